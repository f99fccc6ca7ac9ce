// Documents, visits, queues, pages and tables: the host's functions with the SDK's types.

#include <string.h>

#include "inner.h"

opilio_text opilio_document_uri(opilio_document document) {
  plugin_string_t text;
  opilio_plugin_documents_method_document_uri(document, &text);
  return opilio_borrowed(text);
}

opilio_text opilio_document_base(opilio_document document) {
  plugin_string_t text;
  opilio_plugin_documents_method_document_base(document, &text);
  return opilio_borrowed(text);
}

int32_t opilio_document_status(opilio_document document) {
  return opilio_plugin_documents_method_document_status(document);
}

size_t opilio_document_headers(opilio_document document, const opilio_header **headers) {
  opilio_plugin_documents_list_header_t list;
  opilio_plugin_documents_method_document_headers(document, &list);
  opilio_header *copied = opilio_memory(list.len * sizeof *copied);
  for (size_t n = 0; n < list.len; n++) {
    copied[n] = (opilio_header){opilio_borrowed(list.ptr[n].name), opilio_borrowed(list.ptr[n].value)};
  }
  *headers = copied;
  return list.len;
}

bool opilio_document_header(opilio_document document, const char *name, opilio_text *value) {
  plugin_string_t lent = opilio_lent(opilio_text_of(name));
  plugin_list_string_t found;
  opilio_plugin_documents_method_document_header(document, &lent, &found);
  *value = found.len ? opilio_borrowed(found.ptr[0]) : OPILIO_TEXT("");
  return found.len != 0;
}

opilio_text opilio_document_media_type(opilio_document document) {
  plugin_string_t text;
  opilio_plugin_documents_method_document_media_type(document, &text);
  return opilio_borrowed(text);
}

bool opilio_document_charset(opilio_document document, opilio_text *charset) {
  plugin_string_t found = {0};
  bool is_some = opilio_plugin_documents_method_document_charset(document, &found);
  *charset = opilio_borrowed(found);
  return is_some;
}

bool opilio_document_fragment(opilio_document document, opilio_text *context) {
  plugin_string_t found = {0};
  bool is_some = opilio_plugin_documents_method_document_fragment(document, &found);
  *context = opilio_borrowed(found);
  return is_some;
}

uint64_t opilio_document_length(opilio_document document) {
  return opilio_plugin_documents_method_document_length(document);
}

opilio_bytes opilio_document_read(opilio_document document, uint64_t offset, uint32_t length) {
  plugin_list_u8_t read;
  opilio_plugin_documents_method_document_read(document, offset, length, &read);
  return (opilio_bytes){read.ptr, read.len};
}

opilio_text opilio_document_text(opilio_document document) {
  plugin_string_t text;
  opilio_plugin_documents_method_document_text(document, &text);
  return opilio_borrowed(text);
}

bool opilio_document_note(opilio_document document, const char *name, opilio_text *value) {
  plugin_string_t lent = opilio_lent(opilio_text_of(name));
  plugin_string_t found = {0};
  bool is_some = opilio_plugin_documents_method_document_note(document, &lent, &found);
  *value = opilio_borrowed(found);
  return is_some;
}

void opilio_document_set_note(opilio_document document, const char *name, opilio_text value) {
  plugin_string_t lent = opilio_lent(opilio_text_of(name));
  plugin_string_t text = opilio_lent(value);
  opilio_plugin_documents_method_document_set_note(document, &lent, &text);
}

void opilio_document_annotate(opilio_document document, opilio_text annotation) {
  plugin_string_t lent = opilio_lent(annotation);
  opilio_plugin_documents_method_document_annotate(document, &lent);
}

bool opilio_document_attribute(opilio_document document, const char *name, uint32_t *version, opilio_text *value) {
  plugin_string_t lent = opilio_lent(opilio_text_of(name));
  opilio_kept found = {0};
  bool is_some = opilio_plugin_documents_method_document_attribute(document, &lent, &found);
  *version = found.version;
  *value = opilio_borrowed(found.value);
  return is_some;
}

void opilio_document_set_attribute(opilio_document document, const char *name, opilio_text value) {
  plugin_string_t lent = opilio_lent(opilio_text_of(name));
  plugin_string_t text = opilio_lent(value);
  opilio_plugin_documents_method_document_set_attribute(document, &lent, &text);
}

bool opilio_document_site_value(opilio_document document, const char *name, uint32_t *version, opilio_text *value) {
  plugin_string_t lent = opilio_lent(opilio_text_of(name));
  opilio_kept found = {0};
  bool is_some = opilio_plugin_documents_method_document_site_value(document, &lent, &found);
  *version = found.version;
  *value = opilio_borrowed(found.value);
  return is_some;
}

void opilio_document_set_site_value(opilio_document document, const char *name, opilio_text value) {
  plugin_string_t lent = opilio_lent(opilio_text_of(name));
  plugin_string_t text = opilio_lent(value);
  opilio_plugin_documents_method_document_set_site_value(document, &lent, &text);
}

const opilio_candidate *opilio_visit_candidate(opilio_visit visit) {
  opilio_candidate *candidate = opilio_memory(sizeof *candidate);
  candidate->whole = opilio_memory(sizeof *candidate->whole);
  opilio_plugin_documents_method_visit_candidate(visit, candidate->whole);
  return candidate;
}

uint64_t opilio_visit_now(opilio_visit visit) {
  return opilio_plugin_documents_method_visit_now(visit);
}

int32_t opilio_visit_status(opilio_visit visit) {
  return opilio_plugin_documents_method_visit_status(visit);
}

opilio_text opilio_visit_media_type(opilio_visit visit) {
  plugin_string_t text;
  opilio_plugin_documents_method_visit_media_type(visit, &text);
  return opilio_borrowed(text);
}

opilio_state opilio_visit_state(opilio_visit visit) {
  return (opilio_state)opilio_plugin_documents_method_visit_state(visit);
}

bool opilio_visit_size(opilio_visit visit, uint64_t *size) {
  return opilio_plugin_documents_method_visit_size(visit, size);
}

bool opilio_visit_last_wait(opilio_visit visit, uint64_t *wait) {
  return opilio_plugin_documents_method_visit_last_wait(visit, wait);
}

uint64_t opilio_visit_overdue(opilio_visit visit) {
  return opilio_plugin_documents_method_visit_overdue(visit);
}

uint64_t opilio_visit_visits(opilio_visit visit) {
  return opilio_plugin_documents_method_visit_visits(visit);
}

uint64_t opilio_visit_versions(opilio_visit visit) {
  return opilio_plugin_documents_method_visit_versions(visit);
}

size_t opilio_visit_history(opilio_visit visit, const opilio_past_visit **history) {
  opilio_plugin_documents_list_past_visit_t list;
  opilio_plugin_documents_method_visit_history(visit, &list);
  *history = list.ptr;
  return list.len;
}

bool opilio_visit_validator(opilio_visit visit, const char *name, opilio_text *value) {
  plugin_string_t lent = opilio_lent(opilio_text_of(name));
  plugin_string_t found = {0};
  bool is_some = opilio_plugin_documents_method_visit_validator(visit, &lent, &found);
  *value = opilio_borrowed(found);
  return is_some;
}

uint64_t opilio_visit_outlinks(opilio_visit visit) {
  return opilio_plugin_documents_method_visit_outlinks(visit);
}

uint64_t opilio_visit_inlinks(opilio_visit visit) {
  return opilio_plugin_documents_method_visit_inlinks(visit);
}

size_t opilio_visit_signals(opilio_visit visit, const opilio_signal **signals) {
  opilio_plugin_documents_list_signal_t list;
  opilio_plugin_documents_method_visit_signals(visit, &list);
  *signals = list.ptr;
  return list.len;
}

size_t opilio_visit_neighbourhood(opilio_visit visit, const opilio_neighbourhood **neighbourhood) {
  opilio_plugin_documents_list_neighbourhood_t list;
  opilio_plugin_documents_method_visit_neighbourhood(visit, &list);
  *neighbourhood = list.ptr;
  return list.len;
}

bool opilio_visit_measure(opilio_visit visit, const char *name, double *value) {
  plugin_string_t lent = opilio_lent(opilio_text_of(name));
  return opilio_plugin_documents_method_visit_measure(visit, &lent, value);
}

bool opilio_visit_note(opilio_visit visit, const char *name, opilio_text *value) {
  plugin_string_t lent = opilio_lent(opilio_text_of(name));
  plugin_string_t found = {0};
  bool is_some = opilio_plugin_documents_method_visit_note(visit, &lent, &found);
  *value = opilio_borrowed(found);
  return is_some;
}

bool opilio_visit_attribute(opilio_visit visit, const char *name, uint32_t *version, opilio_text *value) {
  plugin_string_t lent = opilio_lent(opilio_text_of(name));
  opilio_kept found = {0};
  bool is_some = opilio_plugin_documents_method_visit_attribute(visit, &lent, &found);
  *version = found.version;
  *value = opilio_borrowed(found.value);
  return is_some;
}

void opilio_visit_set_attribute(opilio_visit visit, const char *name, opilio_text value) {
  plugin_string_t lent = opilio_lent(opilio_text_of(name));
  plugin_string_t text = opilio_lent(value);
  opilio_plugin_documents_method_visit_set_attribute(visit, &lent, &text);
}

bool opilio_visit_site_value(opilio_visit visit, const char *name, uint32_t *version, opilio_text *value) {
  plugin_string_t lent = opilio_lent(opilio_text_of(name));
  opilio_kept found = {0};
  bool is_some = opilio_plugin_documents_method_visit_site_value(visit, &lent, &found);
  *version = found.version;
  *value = opilio_borrowed(found.value);
  return is_some;
}

void opilio_visit_set_site_value(opilio_visit visit, const char *name, opilio_text value) {
  plugin_string_t lent = opilio_lent(opilio_text_of(name));
  plugin_string_t text = opilio_lent(value);
  opilio_plugin_documents_method_visit_set_site_value(visit, &lent, &text);
}

opilio_text opilio_queue_name(opilio_queue queue) {
  plugin_string_t text;
  opilio_plugin_documents_method_queue_name(queue, &text);
  return opilio_borrowed(text);
}

uint64_t opilio_queue_queued(opilio_queue queue) {
  return opilio_plugin_documents_method_queue_queued(queue);
}

uint64_t opilio_queue_succeeded(opilio_queue queue) {
  return opilio_plugin_documents_method_queue_succeeded(queue);
}

uint64_t opilio_queue_failed(opilio_queue queue) {
  return opilio_plugin_documents_method_queue_failed(queue);
}

uint64_t opilio_queue_bytes(opilio_queue queue) {
  return opilio_plugin_documents_method_queue_bytes(queue);
}

bool opilio_queue_best(opilio_queue queue, uint8_t *precedence) {
  return opilio_plugin_documents_method_queue_best(queue, precedence);
}

uint8_t opilio_queue_base(opilio_queue queue) {
  return opilio_plugin_documents_method_queue_base(queue);
}

uint64_t opilio_queue_now(opilio_queue queue) {
  return opilio_plugin_documents_method_queue_now(queue);
}

opilio_text opilio_page_uri(opilio_page page) {
  plugin_string_t text;
  opilio_plugin_documents_method_page_uri(page, &text);
  return opilio_borrowed(text);
}

opilio_text opilio_page_title(opilio_page page) {
  plugin_string_t text;
  opilio_plugin_documents_method_page_title(page, &text);
  return opilio_borrowed(text);
}

uint64_t opilio_page_elements(opilio_page page) {
  return opilio_plugin_documents_method_page_elements(page);
}

uint64_t opilio_page_text_length(opilio_page page) {
  return opilio_plugin_documents_method_page_text_length(page);
}

uint64_t opilio_page_scroll_height(opilio_page page) {
  return opilio_plugin_documents_method_page_scroll_height(page);
}

uint64_t opilio_page_scroll_top(opilio_page page) {
  return opilio_plugin_documents_method_page_scroll_top(page);
}

uint64_t opilio_page_window_height(opilio_page page) {
  return opilio_plugin_documents_method_page_window_height(page);
}

bool opilio_page_count(opilio_page page, opilio_text selector, uint64_t *count) {
  plugin_string_t lent = opilio_lent(selector);
  return opilio_plugin_documents_method_page_count(page, &lent, count);
}

static opilio_text text_of_result(const opilio_plugin_documents_action_result_t *result) {
  switch (result->tag) {
    case OPILIO_PLUGIN_DOCUMENTS_ACTION_RESULT_VALUE: return opilio_borrowed(result->val.value);
    case OPILIO_PLUGIN_DOCUMENTS_ACTION_RESULT_INVALID: return opilio_borrowed(result->val.invalid);
    case OPILIO_PLUGIN_DOCUMENTS_ACTION_RESULT_EXCEPTION: return opilio_borrowed(result->val.exception);
    case OPILIO_PLUGIN_DOCUMENTS_ACTION_RESULT_REFUSED: return opilio_borrowed(result->val.refused);
    case OPILIO_PLUGIN_DOCUMENTS_ACTION_RESULT_OTHER: return opilio_borrowed(result->val.other);
    default: return OPILIO_TEXT("");
  }
}

size_t opilio_page_results(opilio_page page, const opilio_action_result **results) {
  opilio_plugin_documents_list_action_result_t list;
  opilio_plugin_documents_method_page_results(page, &list);
  opilio_action_result *copied = opilio_memory(list.len * sizeof *copied);
  for (size_t n = 0; n < list.len; n++) {
    copied[n].kind = (opilio_result_kind)list.ptr[n].tag;
    copied[n].clicked = copied[n].kind == OPILIO_RESULT_CLICKED ? list.ptr[n].val.clicked : 0;
    copied[n].text = text_of_result(&list.ptr[n]);
  }
  *results = copied;
  return list.len;
}

uint32_t opilio_page_requests_in_flight(opilio_page page) {
  return opilio_plugin_documents_method_page_requests_in_flight(page);
}

uint64_t opilio_page_time_used(opilio_page page) {
  return opilio_plugin_documents_method_page_time_used(page);
}

uint64_t opilio_page_time_left(opilio_page page) {
  return opilio_plugin_documents_method_page_time_left(page);
}

uint32_t opilio_page_step(opilio_page page) {
  return opilio_plugin_documents_method_page_step(page);
}

uint32_t opilio_page_steps_left(opilio_page page) {
  return opilio_plugin_documents_method_page_steps_left(page);
}

bool opilio_table_find(opilio_text table, opilio_text key, opilio_row *row) {
  plugin_string_t lent_table = opilio_lent(table);
  plugin_string_t lent_key = opilio_lent(key);
  opilio_plugin_tables_row_t found = {0};
  bool is_some = opilio_plugin_tables_find(&lent_table, &lent_key, &found);
  *row = (opilio_row){opilio_borrowed(found.key), opilio_borrowed(found.value)};
  return is_some;
}
