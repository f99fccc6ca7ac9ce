// The functions that the host calls. They call the plugin's functions and drop borrowed resources before they return.

#include <string.h>

#include "inner.h"

static const opilio_plugin *current;
static const void *configured;

// Returns the configured plugin.
static const opilio_plugin *plugin(void) {
  if (!current) opilio_fail("called before `configure`");
  return current;
}

static plugin_list_string_t texts(const char *const *from) {
  plugin_list_string_t list = {0};
  while (from && from[list.len]) list.len++;
  list.ptr = opilio_memory(list.len * sizeof *list.ptr);
  for (size_t n = 0; n < list.len; n++) list.ptr[n] = opilio_owned(opilio_text_of(from[n]));
  return list;
}

static void describe(const opilio_plugin *from, exports_opilio_plugin_setup_description_t *to) {
  static const char no_settings[] = "{\"type\": \"object\", \"properties\": {}, \"additionalProperties\": false}";
  to->name = opilio_owned(opilio_text_of(from->name));
  to->version = opilio_owned(opilio_text_of(from->version));
  to->summary = opilio_owned(opilio_text_of(from->summary));
  to->settings_schema = opilio_owned(opilio_text_of(from->settings_schema ? from->settings_schema : no_settings));
  to->handles.media_types = texts(from->media_types);
  to->handles.uris = texts(from->uris);
  const bool has_kind[] = {
      from->extract, from->judge_candidate || from->judge_document, from->strip, from->compare, from->evaluate,
      from->rank_candidate || from->rank_queue, from->observe, from->step,
  };
  size_t kinds = sizeof has_kind / sizeof *has_kind;
  to->kinds.ptr = opilio_memory(kinds * sizeof *to->kinds.ptr);
  for (size_t kind = 0; kind < kinds; kind++) {
    if (has_kind[kind]) to->kinds.ptr[to->kinds.len++].tag = (uint8_t)kind;
  }
  to->keeps.len = from->keeps_length;
  to->keeps.ptr = opilio_memory(from->keeps_length * sizeof *to->keeps.ptr);
  for (size_t n = 0; n < from->keeps_length; n++) {
    to->keeps.ptr[n].name = opilio_owned(opilio_text_of(from->keeps[n].name));
    to->keeps.ptr[n].keeper.tag = (uint8_t)from->keeps[n].keeper;
    to->keeps.ptr[n].version = from->keeps[n].version;
  }
}

void exports_opilio_plugin_setup_describe(exports_opilio_plugin_setup_list_description_t *ret) {
  ret->len = opilio_plugins_length;
  ret->ptr = opilio_memory(ret->len * sizeof *ret->ptr);
  for (size_t n = 0; n < ret->len; n++) describe(opilio_plugins[n], &ret->ptr[n]);
}

bool exports_opilio_plugin_setup_configure(plugin_string_t *name, plugin_string_t *settings,
                                           exports_opilio_plugin_setup_list_settings_fault_t *err) {
  opilio_faults faults = {0};
  const opilio_plugin *found = NULL;
  for (size_t n = 0; n < opilio_plugins_length; n++) {
    if (opilio_is(opilio_borrowed(*name), opilio_plugins[n]->name)) found = opilio_plugins[n];
  }
  const opilio_json *json = opilio_json_read(opilio_borrowed(*settings));
  if (!found) {
    opilio_fault(&faults, OPILIO_TEXT(""), OPILIO_TEXT("the component has no plugin of this name"));
  } else if (!json) {
    opilio_fault(&faults, OPILIO_TEXT(""), OPILIO_TEXT("invalid JSON, or JSON that is nested too deeply"));
  } else {
    configured = found->configure ? found->configure(json, &faults) : NULL;
  }
  if (faults.list.len) {
    *err = faults.list;
    return false;
  }
  current = found;
  return true;
}

void exports_opilio_plugin_extractor_extract(exports_opilio_plugin_extractor_list_own_document_t *documents,
                                             exports_opilio_plugin_extractor_list_extraction_t *ret) {
  ret->len = documents->len;
  ret->ptr = opilio_memory(ret->len * sizeof *ret->ptr);
  for (size_t n = 0; n < documents->len; n++) {
    opilio_extraction out = {.answer = &ret->ptr[n]};
    opilio_document document = {documents->ptr[n].__handle};
    plugin()->extract(configured, document, &out);
  }
}

void exports_opilio_plugin_filter_judge_candidates(exports_opilio_plugin_filter_stage_t *stage,
                                                   exports_opilio_plugin_filter_borrow_candidates_t candidates,
                                                   exports_opilio_plugin_filter_list_ruling_t *ret) {
  opilio_candidates all = opilio_candidates_of(candidates);
  ret->len = all.length;
  ret->ptr = opilio_memory(ret->len * sizeof *ret->ptr);
  for (size_t n = 0; n < ret->len; n++) {
    opilio_candidate candidate = {.all = &all, .at = n};
    bool is_set = plugin()->judge_candidate != NULL;
    ret->ptr[n] = is_set ? plugin()->judge_candidate(configured, (opilio_stage)stage->tag, &candidate) : opilio_pass();
  }
  opilio_plugin_documents_candidates_drop_borrow(candidates);
}

void exports_opilio_plugin_filter_judge_document(exports_opilio_plugin_filter_stage_t *stage,
                                                 exports_opilio_plugin_filter_borrow_document_t document,
                                                 exports_opilio_plugin_filter_borrow_visit_t visit,
                                                 exports_opilio_plugin_filter_ruling_t *ret) {
  opilio_stage at = (opilio_stage)stage->tag;
  if (plugin()->judge_document) *ret = plugin()->judge_document(configured, at, document, visit);
  else *ret = plugin()->judge_candidate(configured, at, opilio_visit_candidate(visit));
  opilio_plugin_documents_document_drop_borrow(document);
  opilio_plugin_documents_visit_drop_borrow(visit);
}

bool exports_opilio_plugin_digest_stripper_strip(exports_opilio_plugin_digest_stripper_borrow_document_t document,
                                                 exports_opilio_plugin_digest_stripper_list_span_t *ret,
                                                 exports_opilio_plugin_digest_stripper_strip_problem_t *err) {
  opilio_spans out = {0};
  plugin()->strip(configured, document, &out);
  opilio_plugin_documents_document_drop_borrow(document);
  *ret = out.list;
  *err = out.problem;
  return !out.failed;
}

bool exports_opilio_plugin_wait_evaluator_evaluate(exports_opilio_plugin_wait_evaluator_borrow_visit_t visit,
                                                   exports_opilio_plugin_wait_evaluator_wait_t *ret) {
  opilio_wait wait = {0};
  bool has_answer = plugin()->evaluate(configured, visit, &wait);
  opilio_plugin_documents_visit_drop_borrow(visit);
  ret->next_visit = wait.next_visit;
  ret->ask_again.is_some = wait.ask_again != 0;
  ret->ask_again.val = wait.ask_again;
  return has_answer;
}

void exports_opilio_plugin_change_evaluator_compare(exports_opilio_plugin_change_evaluator_borrow_document_t document,
                                                    exports_opilio_plugin_change_evaluator_borrow_visit_t visit,
                                                    plugin_list_u8_t *maybe_last,
                                                    exports_opilio_plugin_change_evaluator_comparison_t *ret) {
  opilio_bytes last = {0};
  if (maybe_last) last = (opilio_bytes){maybe_last->ptr, maybe_last->len};
  opilio_comparison comparison = plugin()->compare(configured, document, visit, maybe_last ? &last : NULL);
  opilio_plugin_documents_document_drop_borrow(document);
  opilio_plugin_documents_visit_drop_borrow(visit);
  ret->difference.is_some = comparison.difference != OPILIO_NO_ANSWER;
  ret->difference.val = comparison.difference == OPILIO_SAME;
  ret->fingerprint.is_some = comparison.fingerprint.ptr != NULL;
  ret->fingerprint.val = opilio_owned_bytes(comparison.fingerprint);
  ret->reason = opilio_owned(comparison.reason);
}

void exports_opilio_plugin_precedence_rank_candidates(exports_opilio_plugin_precedence_borrow_candidates_t candidates,
                                                      exports_opilio_plugin_precedence_borrow_document_t *maybe_document,
                                                      plugin_list_option_u8_t *ret) {
  opilio_candidates all = opilio_candidates_of(candidates);
  ret->len = all.length;
  ret->ptr = opilio_memory(ret->len * sizeof *ret->ptr);
  for (size_t n = 0; n < ret->len; n++) {
    opilio_candidate candidate = {.all = &all, .at = n};
    bool is_set = plugin()->rank_candidate != NULL;
    ret->ptr[n].val = is_set ? plugin()->rank_candidate(configured, &candidate, maybe_document) : 0;
    ret->ptr[n].is_some = ret->ptr[n].val != 0;
  }
  opilio_plugin_documents_candidates_drop_borrow(candidates);
  if (maybe_document) opilio_plugin_documents_document_drop_borrow(*maybe_document);
}

bool exports_opilio_plugin_precedence_rank_queue(exports_opilio_plugin_precedence_borrow_queue_t queue, uint8_t *ret) {
  *ret = plugin()->rank_queue ? plugin()->rank_queue(configured, queue) : 0;
  opilio_plugin_documents_queue_drop_borrow(queue);
  return *ret != 0;
}

void exports_opilio_plugin_observer_observe(plugin_list_u8_t *memory, exports_opilio_plugin_observer_list_finished_t *events,
                                            exports_opilio_plugin_observer_observation_t *ret) {
  *ret = (exports_opilio_plugin_observer_observation_t){0};
  opilio_observation out = {.answer = ret};
  plugin()->observe(configured, (opilio_bytes){memory->ptr, memory->len}, events->ptr, events->len, &out);
}

void exports_opilio_plugin_observer_report(plugin_list_u8_t *memory, exports_opilio_plugin_observer_instant_t now,
                                           exports_opilio_plugin_observer_list_report_file_t *ret) {
  *ret = (exports_opilio_plugin_observer_list_report_file_t){0};
  opilio_reports out = {.answer = ret};
  if (plugin()->report) plugin()->report(configured, (opilio_bytes){memory->ptr, memory->len}, now, &out);
}

void exports_opilio_plugin_page_behavior_step(exports_opilio_plugin_page_behavior_borrow_page_t page,
                                              exports_opilio_plugin_page_behavior_borrow_visit_t visit, plugin_list_u8_t *memory,
                                              exports_opilio_plugin_page_behavior_step_plan_t *ret) {
  *ret = (exports_opilio_plugin_page_behavior_step_plan_t){0};
  opilio_step_plan out = {.answer = ret};
  plugin()->step(configured, page, visit, (opilio_bytes){memory->ptr, memory->len}, &out);
  opilio_plugin_documents_page_drop_borrow(page);
  opilio_plugin_documents_visit_drop_borrow(visit);
}
