// The host's side for tests without one: documents, a log on standard error, and nothing of everything else.
// Compile it beside the plugin and the SDK with any C compiler; README.md has the line.

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "opilio_test.h"

enum { DOCUMENTS_MAX = 64 };

static opilio_test_document documents[DOCUMENTS_MAX];
static int32_t documents_length;

// Handles begin at 1, as the host's do.
opilio_document opilio_test_open(opilio_test_document document) {
  if (documents_length == DOCUMENTS_MAX) abort();
  documents[documents_length++] = document;
  return (opilio_document){documents_length};
}

static const opilio_test_document *opened(opilio_document document) { return &documents[document.__handle - 1]; }

static void give(const char *text, plugin_string_t *ret) {
  *ret = (plugin_string_t){(uint8_t *)(text ? text : ""), text ? strlen(text) : 0};
}

void opilio_plugin_log_write(opilio_plugin_log_level_t level, plugin_string_t *message) {
  static const char *const levels[] = {"debug", "info", "warn", "error"};
  fprintf(stderr, "%s: %.*s\n", levels[level], (int)message->len, (const char *)message->ptr);
}

void opilio_plugin_documents_method_document_uri(opilio_document self, plugin_string_t *ret) { give(opened(self)->uri, ret); }

void opilio_plugin_documents_method_document_base(opilio_document self, plugin_string_t *ret) { give(opened(self)->uri, ret); }

int32_t opilio_plugin_documents_method_document_status(opilio_document self) { return opened(self)->status; }

void opilio_plugin_documents_method_document_media_type(opilio_document self, plugin_string_t *ret) {
  give(opened(self)->media_type, ret);
}

uint64_t opilio_plugin_documents_method_document_length(opilio_document self) { return opened(self)->content.len; }

void opilio_plugin_documents_method_document_read(opilio_document self, uint64_t offset, uint32_t length, plugin_list_u8_t *ret) {
  opilio_text content = opened(self)->content;
  uint64_t from = offset < content.len ? offset : content.len;
  uint64_t left = content.len - from;
  *ret = (plugin_list_u8_t){(uint8_t *)content.ptr + from, (size_t)(left < length ? left : length)};
}

void opilio_plugin_documents_method_document_text(opilio_document self, plugin_string_t *ret) {
  *ret = (plugin_string_t){(uint8_t *)opened(self)->content.ptr, opened(self)->content.len};
}

// What a test has no use for: nothing, none, nought.

void opilio_plugin_documents_method_document_headers(opilio_plugin_documents_borrow_document_t self, opilio_plugin_documents_list_header_t *ret) {
  (void)self;
  memset(ret, 0, sizeof *ret);
}

void opilio_plugin_documents_method_document_header(opilio_plugin_documents_borrow_document_t self, plugin_string_t *name, plugin_list_string_t *ret) {
  (void)self;
  (void)name;
  memset(ret, 0, sizeof *ret);
}

bool opilio_plugin_documents_method_document_charset(opilio_plugin_documents_borrow_document_t self, plugin_string_t *ret) {
  (void)self;
  memset(ret, 0, sizeof *ret);
  return 0;
}

bool opilio_plugin_documents_method_document_fragment(opilio_plugin_documents_borrow_document_t self, plugin_string_t *ret) {
  (void)self;
  memset(ret, 0, sizeof *ret);
  return 0;
}

bool opilio_plugin_documents_method_document_note(opilio_plugin_documents_borrow_document_t self, plugin_string_t *name, plugin_string_t *ret) {
  (void)self;
  (void)name;
  memset(ret, 0, sizeof *ret);
  return 0;
}

void opilio_plugin_documents_method_document_set_note(opilio_plugin_documents_borrow_document_t self, plugin_string_t *name, plugin_string_t *value) {
  (void)self;
  (void)name;
  (void)value;
}

void opilio_plugin_documents_method_document_annotate(opilio_plugin_documents_borrow_document_t self, plugin_string_t *annotation) {
  (void)self;
  (void)annotation;
}

bool opilio_plugin_documents_method_document_attribute(opilio_plugin_documents_borrow_document_t self, plugin_string_t *name, opilio_plugin_documents_kept_value_t *ret) {
  (void)self;
  (void)name;
  memset(ret, 0, sizeof *ret);
  return 0;
}

void opilio_plugin_documents_method_document_set_attribute(opilio_plugin_documents_borrow_document_t self, plugin_string_t *name, plugin_string_t *value) {
  (void)self;
  (void)name;
  (void)value;
}

bool opilio_plugin_documents_method_document_site_value(opilio_plugin_documents_borrow_document_t self, plugin_string_t *name, opilio_plugin_documents_kept_value_t *ret) {
  (void)self;
  (void)name;
  memset(ret, 0, sizeof *ret);
  return 0;
}

void opilio_plugin_documents_method_document_set_site_value(opilio_plugin_documents_borrow_document_t self, plugin_string_t *name, plugin_string_t *value) {
  (void)self;
  (void)name;
  (void)value;
}

uint32_t opilio_plugin_documents_method_candidates_length(opilio_plugin_documents_borrow_candidates_t self) {
  (void)self;
  return 0;
}

void opilio_plugin_documents_method_candidates_uris(opilio_plugin_documents_borrow_candidates_t self, plugin_string_t *ret) {
  (void)self;
  memset(ret, 0, sizeof *ret);
}

void opilio_plugin_documents_method_candidates_surts(opilio_plugin_documents_borrow_candidates_t self, plugin_string_t *ret) {
  (void)self;
  memset(ret, 0, sizeof *ret);
}

void opilio_plugin_documents_method_candidates_hop_paths(opilio_plugin_documents_borrow_candidates_t self, plugin_string_t *ret) {
  (void)self;
  memset(ret, 0, sizeof *ret);
}

void opilio_plugin_documents_method_candidates_contexts(opilio_plugin_documents_borrow_candidates_t self, plugin_string_t *ret) {
  (void)self;
  memset(ret, 0, sizeof *ret);
}

void opilio_plugin_documents_method_candidates_vias(opilio_plugin_documents_borrow_candidates_t self, plugin_string_t *ret) {
  (void)self;
  memset(ret, 0, sizeof *ret);
}

void opilio_plugin_documents_method_candidates_via_surts(opilio_plugin_documents_borrow_candidates_t self, plugin_string_t *ret) {
  (void)self;
  memset(ret, 0, sizeof *ret);
}

void opilio_plugin_documents_method_candidates_sources(opilio_plugin_documents_borrow_candidates_t self, plugin_string_t *ret) {
  (void)self;
  memset(ret, 0, sizeof *ret);
}

void opilio_plugin_documents_method_candidates_seeds(opilio_plugin_documents_borrow_candidates_t self, plugin_list_bool_t *ret) {
  (void)self;
  memset(ret, 0, sizeof *ret);
}

void opilio_plugin_documents_method_candidates_addresses(opilio_plugin_documents_borrow_candidates_t self, plugin_string_t *ret) {
  (void)self;
  memset(ret, 0, sizeof *ret);
}

void opilio_plugin_documents_method_candidates_get(opilio_plugin_documents_borrow_candidates_t self, uint32_t index, opilio_plugin_documents_candidate_t *ret) {
  (void)self;
  (void)index;
  memset(ret, 0, sizeof *ret);
}

void opilio_plugin_documents_method_queue_name(opilio_plugin_documents_borrow_queue_t self, plugin_string_t *ret) {
  (void)self;
  memset(ret, 0, sizeof *ret);
}

uint64_t opilio_plugin_documents_method_queue_queued(opilio_plugin_documents_borrow_queue_t self) {
  (void)self;
  return 0;
}

uint64_t opilio_plugin_documents_method_queue_succeeded(opilio_plugin_documents_borrow_queue_t self) {
  (void)self;
  return 0;
}

uint64_t opilio_plugin_documents_method_queue_failed(opilio_plugin_documents_borrow_queue_t self) {
  (void)self;
  return 0;
}

uint64_t opilio_plugin_documents_method_queue_bytes(opilio_plugin_documents_borrow_queue_t self) {
  (void)self;
  return 0;
}

bool opilio_plugin_documents_method_queue_best(opilio_plugin_documents_borrow_queue_t self, uint8_t *ret) {
  (void)self;
  memset(ret, 0, sizeof *ret);
  return 0;
}

uint8_t opilio_plugin_documents_method_queue_base(opilio_plugin_documents_borrow_queue_t self) {
  (void)self;
  return 0;
}

opilio_plugin_documents_instant_t opilio_plugin_documents_method_queue_now(opilio_plugin_documents_borrow_queue_t self) {
  (void)self;
  return 0;
}

void opilio_plugin_documents_method_visit_candidate(opilio_plugin_documents_borrow_visit_t self, opilio_plugin_documents_candidate_t *ret) {
  (void)self;
  memset(ret, 0, sizeof *ret);
}

opilio_plugin_documents_instant_t opilio_plugin_documents_method_visit_now(opilio_plugin_documents_borrow_visit_t self) {
  (void)self;
  return 0;
}

int32_t opilio_plugin_documents_method_visit_status(opilio_plugin_documents_borrow_visit_t self) {
  (void)self;
  return 0;
}

void opilio_plugin_documents_method_visit_media_type(opilio_plugin_documents_borrow_visit_t self, plugin_string_t *ret) {
  (void)self;
  memset(ret, 0, sizeof *ret);
}

opilio_plugin_documents_content_state_t opilio_plugin_documents_method_visit_state(opilio_plugin_documents_borrow_visit_t self) {
  (void)self;
  return 0;
}

bool opilio_plugin_documents_method_visit_size(opilio_plugin_documents_borrow_visit_t self, uint64_t *ret) {
  (void)self;
  memset(ret, 0, sizeof *ret);
  return 0;
}

bool opilio_plugin_documents_method_visit_last_wait(opilio_plugin_documents_borrow_visit_t self, opilio_plugin_documents_duration_t *ret) {
  (void)self;
  memset(ret, 0, sizeof *ret);
  return 0;
}

opilio_plugin_documents_duration_t opilio_plugin_documents_method_visit_overdue(opilio_plugin_documents_borrow_visit_t self) {
  (void)self;
  return 0;
}

uint64_t opilio_plugin_documents_method_visit_visits(opilio_plugin_documents_borrow_visit_t self) {
  (void)self;
  return 0;
}

uint64_t opilio_plugin_documents_method_visit_versions(opilio_plugin_documents_borrow_visit_t self) {
  (void)self;
  return 0;
}

void opilio_plugin_documents_method_visit_history(opilio_plugin_documents_borrow_visit_t self, opilio_plugin_documents_list_past_visit_t *ret) {
  (void)self;
  memset(ret, 0, sizeof *ret);
}

bool opilio_plugin_documents_method_visit_validator(opilio_plugin_documents_borrow_visit_t self, plugin_string_t *name, plugin_string_t *ret) {
  (void)self;
  (void)name;
  memset(ret, 0, sizeof *ret);
  return 0;
}

uint64_t opilio_plugin_documents_method_visit_outlinks(opilio_plugin_documents_borrow_visit_t self) {
  (void)self;
  return 0;
}

uint64_t opilio_plugin_documents_method_visit_inlinks(opilio_plugin_documents_borrow_visit_t self) {
  (void)self;
  return 0;
}

void opilio_plugin_documents_method_visit_signals(opilio_plugin_documents_borrow_visit_t self, opilio_plugin_documents_list_signal_t *ret) {
  (void)self;
  memset(ret, 0, sizeof *ret);
}

void opilio_plugin_documents_method_visit_neighbourhood(opilio_plugin_documents_borrow_visit_t self, opilio_plugin_documents_list_neighbourhood_t *ret) {
  (void)self;
  memset(ret, 0, sizeof *ret);
}

bool opilio_plugin_documents_method_visit_measure(opilio_plugin_documents_borrow_visit_t self, plugin_string_t *name, double *ret) {
  (void)self;
  (void)name;
  memset(ret, 0, sizeof *ret);
  return 0;
}

bool opilio_plugin_documents_method_visit_attribute(opilio_plugin_documents_borrow_visit_t self, plugin_string_t *name, opilio_plugin_documents_kept_value_t *ret) {
  (void)self;
  (void)name;
  memset(ret, 0, sizeof *ret);
  return 0;
}

void opilio_plugin_documents_method_visit_set_attribute(opilio_plugin_documents_borrow_visit_t self, plugin_string_t *name, plugin_string_t *value) {
  (void)self;
  (void)name;
  (void)value;
}

bool opilio_plugin_documents_method_visit_site_value(opilio_plugin_documents_borrow_visit_t self, plugin_string_t *name, opilio_plugin_documents_kept_value_t *ret) {
  (void)self;
  (void)name;
  memset(ret, 0, sizeof *ret);
  return 0;
}

void opilio_plugin_documents_method_visit_set_site_value(opilio_plugin_documents_borrow_visit_t self, plugin_string_t *name, plugin_string_t *value) {
  (void)self;
  (void)name;
  (void)value;
}

bool opilio_plugin_documents_method_visit_note(opilio_plugin_documents_borrow_visit_t self, plugin_string_t *name, plugin_string_t *ret) {
  (void)self;
  (void)name;
  memset(ret, 0, sizeof *ret);
  return 0;
}

void opilio_plugin_counters_count(plugin_string_t *name, uint64_t n) {
  (void)name;
  (void)n;
}

bool opilio_plugin_tables_kind_of(plugin_string_t *table, opilio_plugin_tables_kind_t *ret) {
  (void)table;
  memset(ret, 0, sizeof *ret);
  return 0;
}

bool opilio_plugin_tables_find(plugin_string_t *table, plugin_string_t *key, opilio_plugin_tables_row_t *ret) {
  (void)table;
  (void)key;
  memset(ret, 0, sizeof *ret);
  return 0;
}

void opilio_plugin_tables_find_candidates(plugin_string_t *table, opilio_plugin_tables_borrow_candidates_t candidates, plugin_list_bool_t *ret) {
  (void)table;
  (void)candidates;
  memset(ret, 0, sizeof *ret);
}

void opilio_plugin_documents_document_drop_borrow(opilio_plugin_documents_borrow_document_t handle) {
  (void)handle;
}

void opilio_plugin_documents_candidates_drop_borrow(opilio_plugin_documents_borrow_candidates_t handle) {
  (void)handle;
}

void opilio_plugin_documents_queue_drop_borrow(opilio_plugin_documents_borrow_queue_t handle) {
  (void)handle;
}

void opilio_plugin_documents_visit_drop_borrow(opilio_plugin_documents_borrow_visit_t handle) {
  (void)handle;
}
