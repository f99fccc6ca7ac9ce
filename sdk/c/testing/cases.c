// Runs cases natively. `opilio plugin test` runs the same JSON files on the component. docs/PLUGINS.md has the format.

// Declares scandir, even with -std=c11.
#define _DEFAULT_SOURCE

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing.h"

// The id of the running case, for the message when a plugin aborts.
static opilio_text current = {"", 0};

static void report_abort(int number) {
  (void)number;
  fprintf(stderr, "%.*s: the plugin aborted\n", (int)current.len, current.ptr);
  _Exit(1);
}

static opilio_text contents(const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) {
    perror(path);
    exit(2);
  }
  char *bytes = NULL;
  size_t length = 0;
  for (size_t room = 4096;; room *= 2) {
    bytes = realloc(bytes, room);
    if (!bytes) abort();
    length += fread(bytes + length, 1, room - length, file);
    if (length < room) break;
  }
  fclose(file);
  return (opilio_text){bytes, length};
}

static const opilio_json *member(const opilio_json *object, const char *name) { return opilio_json_member(object, name); }

static bool is_there(const opilio_json *json) { return json && json->type != OPILIO_JSON_NULL; }

// ---- calls

// The answer to a call, or the problem that prevented it.
typedef struct {
  opilio_json answer;
  const char *problem;
} outcome;

static outcome failure(const char *problem) { return (outcome){.problem = problem}; }

static outcome success(opilio_json answer) { return (outcome){.answer = answer}; }

// Returns a document's handle. Its content may be in a file beside the case.
static int32_t document(const opilio_json *facts, const char *folder) {
  opilio_json *made = opilio_memory(sizeof *made);
  *made = is_there(facts) ? *facts : opilio_json_empty(OPILIO_JSON_OBJECT);
  opilio_text file = opilio_json_text(member(facts, "file"), OPILIO_TEXT(""));
  if (file.len) {
    opilio_text content = contents(opilio_format("%s/%.*s", folder, (int)file.len, file.ptr).ptr);
    opilio_json_set(made, "bytes", opilio_json_of_bytes((opilio_bytes){(const uint8_t *)content.ptr, content.len}));
  }
  return opilio_test_handle(made);
}

static const char *charset_problem(const opilio_json *facts) {
  opilio_text charset = opilio_json_text(member(facts, "charset"), OPILIO_TEXT("utf-8"));
  bool has_text = opilio_json_text(member(facts, "text"), OPILIO_TEXT("")).len != 0;
  if (has_text || opilio_is(charset, "utf-8") || opilio_test_is_single_byte(charset)) return NULL;
  return opilio_format("native tests cannot decode %.*s: give `text` next to the bytes, or run this case on the component with opilio plugin test",
                       (int)charset.len, charset.ptr)
      .ptr;
}

static uint8_t stage(const opilio_json *name) {
  static const char *const stages[] = {"scope", "pre-fetch", "mid-fetch", "post-fetch", "extract", "render", "archive", "plugin"};
  for (uint8_t n = 0; n < sizeof stages / sizeof *stages; n++) {
    if (opilio_is(opilio_json_text(name, OPILIO_TEXT("")), stages[n])) return n;
  }
  return EXPORTS_OPILIO_PLUGIN_FILTER_STAGE_OTHER;
}

// Generated bindings pass uninitialised answers. Tests fill them with a pattern, to detect fields that are left unset.
static void unset(void *answer, size_t size) { memset(answer, 0xA5, size); }

static outcome extract(const opilio_json *given, const char *folder) {
  const opilio_json *documents = member(given, "documents");
  size_t length = opilio_json_length(documents);
  opilio_plugin_documents_own_document_t *handles = opilio_memory(length * sizeof *handles);
  for (size_t n = 0; n < length; n++) {
    const char *problem = charset_problem(opilio_json_item(documents, n));
    if (problem) return failure(problem);
    handles[n].__handle = document(opilio_json_item(documents, n), folder);
  }
  exports_opilio_plugin_extractor_list_own_document_t all = {handles, length};
  exports_opilio_plugin_extractor_list_extraction_t ret;
  unset(&ret, sizeof ret);
  exports_opilio_plugin_extractor_extract(&all, &ret);
  return success(opilio_answer_extractions(&ret));
}

static outcome observe(const opilio_json *given) {
  opilio_bytes before = opilio_json_bytes(member(given, "memory"));
  const opilio_json *events = member(given, "events");
  exports_opilio_plugin_observer_list_finished_t all = {opilio_memory(opilio_json_length(events) * sizeof *all.ptr), 0};
  for (; all.len < opilio_json_length(events); all.len++) all.ptr[all.len] = opilio_test_event(opilio_json_item(events, all.len));
  plugin_list_u8_t memory = {(uint8_t *)before.ptr, before.len};
  exports_opilio_plugin_observer_observation_t ret;
  unset(&ret, sizeof ret);
  exports_opilio_plugin_observer_observe(&memory, &all, &ret);
  return success(opilio_answer_observation(&ret));
}

static outcome step(const opilio_json *given, opilio_plugin_documents_borrow_visit_t visit) {
  opilio_bytes before = opilio_json_bytes(member(given, "memory"));
  plugin_list_u8_t memory = {(uint8_t *)before.ptr, before.len};
  opilio_plugin_documents_borrow_page_t page = {opilio_test_handle(member(given, "page"))};
  exports_opilio_plugin_page_behavior_step_plan_t ret;
  unset(&ret, sizeof ret);
  exports_opilio_plugin_page_behavior_step(page, visit, &memory, &ret);
  return success(opilio_answer_plan(&ret));
}

// Calls the configured plugin.
static outcome call_plugin(const opilio_plugin *plugin, opilio_text call, const opilio_json *given, const char *folder) {
  const opilio_json *page = member(given, "document");
  const char *problem = charset_problem(page);
  if (problem) return failure(problem);
  opilio_plugin_documents_borrow_visit_t visit = {opilio_test_handle(member(given, "visit"))};
  opilio_plugin_documents_borrow_candidates_t candidates = {opilio_test_handle(member(given, "candidates"))};
  opilio_plugin_documents_borrow_document_t whole = {document(page, folder)};
  exports_opilio_plugin_filter_stage_t at = {.tag = stage(member(given, "stage"))};

  if (opilio_is(call, "extract") && plugin->extract) return extract(given, folder);
  if (opilio_is(call, "judge-candidates")) {
    exports_opilio_plugin_filter_list_ruling_t ret;
    unset(&ret, sizeof ret);
    exports_opilio_plugin_filter_judge_candidates(&at, candidates, &ret);
    return success(opilio_answer_rulings(&ret));
  }
  if (opilio_is(call, "judge-document") && (plugin->judge_document || plugin->judge_candidate)) {
    exports_opilio_plugin_filter_ruling_t ret;
    unset(&ret, sizeof ret);
    exports_opilio_plugin_filter_judge_document(&at, whole, visit, &ret);
    return success(opilio_answer_ruling(&ret));
  }
  if (opilio_is(call, "strip") && plugin->strip) {
    exports_opilio_plugin_digest_stripper_list_span_t spans;
    unset(&spans, sizeof spans);
    exports_opilio_plugin_digest_stripper_strip_problem_t failed;
    unset(&failed, sizeof failed);
    opilio_json made = opilio_json_empty(OPILIO_JSON_OBJECT);
    if (exports_opilio_plugin_digest_stripper_strip(whole, &spans, &failed)) opilio_json_set(&made, "ok", opilio_answer_spans(&spans));
    else opilio_json_set(&made, "error", opilio_answer_strip_problem(&failed));
    return success(made);
  }
  if (opilio_is(call, "compare") && plugin->compare) {
    opilio_bytes before = opilio_json_bytes(member(given, "last"));
    plugin_list_u8_t last = {(uint8_t *)before.ptr, before.len};
    exports_opilio_plugin_change_evaluator_comparison_t ret;
    unset(&ret, sizeof ret);
    exports_opilio_plugin_change_evaluator_compare(whole, visit, is_there(member(given, "last")) ? &last : NULL, &ret);
    return success(opilio_answer_comparison(&ret));
  }
  if (opilio_is(call, "evaluate") && plugin->evaluate) {
    exports_opilio_plugin_wait_evaluator_wait_t ret;
    unset(&ret, sizeof ret);
    bool answers = exports_opilio_plugin_wait_evaluator_evaluate(visit, &ret);
    return success(answers ? opilio_answer_wait(&ret) : opilio_json_empty(OPILIO_JSON_NULL));
  }
  if (opilio_is(call, "rank-candidates")) {
    plugin_list_option_u8_t ret;
    unset(&ret, sizeof ret);
    exports_opilio_plugin_precedence_rank_candidates(candidates, is_there(page) ? &whole : NULL, &ret);
    return success(opilio_answer_ranks(&ret));
  }
  if (opilio_is(call, "rank-queue")) {
    uint8_t ret = 0;
    opilio_plugin_documents_borrow_queue_t queue = {opilio_test_handle(member(given, "queue"))};
    bool answers = exports_opilio_plugin_precedence_rank_queue(queue, &ret);
    return success(answers ? opilio_json_of_number(ret) : opilio_json_empty(OPILIO_JSON_NULL));
  }
  if (opilio_is(call, "observe") && plugin->observe) return observe(given);
  if (opilio_is(call, "report") && plugin->observe) {
    opilio_bytes before = opilio_json_bytes(member(given, "memory"));
    plugin_list_u8_t memory = {(uint8_t *)before.ptr, before.len};
    exports_opilio_plugin_observer_list_report_file_t ret;
    unset(&ret, sizeof ret);
    exports_opilio_plugin_observer_report(&memory, (uint64_t)opilio_json_number(member(given, "now"), 0), &ret);
    return success(opilio_answer_reports(&ret));
  }
  if (opilio_is(call, "step") && plugin->step) return step(given, visit);
  return failure(opilio_format("%s has no function for the call %.*s", plugin->name, (int)call.len, call.ptr).ptr);
}

// Returns the settings as the host passes them, with defaults for those that are missing.
static opilio_json with_defaults(const opilio_json *given, const char *schema) {
  opilio_json made = opilio_json_empty(OPILIO_JSON_OBJECT);
  for (size_t n = 0; given && n < given->length; n++) {
    opilio_text name = given->names[n];
    opilio_json_set(&made, opilio_format("%.*s", (int)name.len, name.ptr).ptr, given->items[n]);
  }
  const opilio_json *properties = member(schema ? opilio_json_read(opilio_text_of(schema)) : NULL, "properties");
  for (size_t n = 0; properties && n < properties->length; n++) {
    const opilio_json *otherwise = member(&properties->items[n], "default");
    const char *name = opilio_format("%.*s", (int)properties->names[n].len, properties->names[n].ptr).ptr;
    if (otherwise && !member(given, name)) opilio_json_set(&made, name, *otherwise);
  }
  return made;
}

static outcome ask(const opilio_json *one, const char *folder) {
  const opilio_json *calls = member(one, "call");
  if (!calls || calls->type != OPILIO_JSON_OBJECT || calls->length != 1) return failure("a case must have exactly one call");
  const opilio_json *tables = member(one, "tables");
  for (size_t n = 0; tables && n < tables->length; n++) {
    opilio_text kind = opilio_json_text(member(&tables->items[n], "kind"), OPILIO_TEXT(""));
    if (!opilio_is(kind, "surt-prefixes") && !opilio_is(kind, "key-values")) {
      return failure("native tests support only tables of SURT prefixes and of keys: run this case on the component with opilio plugin test");
    }
  }
  opilio_text name = opilio_json_text(member(one, "plugin"), OPILIO_TEXT(""));
  const opilio_plugin *plugin = NULL;
  for (size_t n = 0; n < opilio_plugins_length; n++) {
    if (opilio_is(name, opilio_plugins[n]->name)) plugin = opilio_plugins[n];
  }
  if (!plugin) return failure(opilio_format("no plugin is named %.*s", (int)name.len, name.ptr).ptr);
  // There are no tables while a plugin is configured.
  opilio_test_tables(NULL);
  opilio_json settings = with_defaults(member(one, "settings"), plugin->settings_schema);
  plugin_string_t lent = opilio_lent(name), settings_text = opilio_lent(opilio_json_to_text(&settings));
  exports_opilio_plugin_setup_list_settings_fault_t faults = {0};
  bool is_configured = exports_opilio_plugin_setup_configure(&lent, &settings_text, &faults);
  opilio_json fault_list = is_configured ? opilio_json_empty(OPILIO_JSON_LIST) : opilio_answer_faults(&faults);
  if (opilio_is(calls->names[0], "configure")) return success(fault_list);
  if (!is_configured) {
    opilio_text list = opilio_json_to_text(&fault_list);
    return failure(opilio_format("the plugin rejects its settings: %.*s", (int)list.len, list.ptr).ptr);
  }
  opilio_test_tables(tables);
  return call_plugin(plugin, calls->names[0], &calls->items[0], folder);
}

// ---- comparison

static bool is_default(opilio_text name, const opilio_json *value) {
  switch (value->type) {
    case OPILIO_JSON_NULL: return true;
    case OPILIO_JSON_BOOLEAN: return !value->boolean;
    case OPILIO_JSON_NUMBER: return value->number == 0;
    case OPILIO_JSON_TEXT: return value->text.len == 0 || (opilio_is(name, "hop") && opilio_is(value->text, "link"));
    default: return value->length == 0;
  }
}

// Removes members that have their defaults, and reasons and problems that the case does not expect.
static opilio_json without_defaults(const opilio_json *value, const opilio_json *expected) {
  if (value->type == OPILIO_JSON_LIST) {
    opilio_json made = opilio_json_empty(OPILIO_JSON_LIST);
    for (size_t n = 0; n < value->length; n++) opilio_json_add(&made, without_defaults(&value->items[n], opilio_json_item(expected, n)));
    return made;
  }
  if (value->type != OPILIO_JSON_OBJECT) return *value;
  opilio_json made = opilio_json_empty(OPILIO_JSON_OBJECT);
  for (size_t n = 0; n < value->length; n++) {
    opilio_text name = value->names[n];
    const char *member_name = opilio_format("%.*s", (int)name.len, name.ptr).ptr;
    bool is_reason = opilio_is(name, "reason") || opilio_is(name, "problem");
    if (is_reason && !member(expected, member_name) && !member(value, "links")) continue;
    opilio_json field = without_defaults(&value->items[n], member(expected, member_name));
    if (!is_default(name, &field)) opilio_json_set(&made, member_name, field);
  }
  return made;
}

static bool passes(const opilio_json *one, const char *folder) {
  current = opilio_json_text(member(one, "id"), OPILIO_TEXT("a case without an id"));
  outcome result = ask(one, folder);
  if (result.problem) {
    fprintf(stderr, "%.*s: %s\n", (int)current.len, current.ptr, result.problem);
    return false;
  }
  static const opilio_json null = {.type = OPILIO_JSON_NULL};
  const opilio_json *expected = member(one, "expected") ? member(one, "expected") : &null;
  opilio_json wanted = without_defaults(expected, expected), got = without_defaults(&result.answer, expected);
  if (opilio_json_equal(&wanted, &got)) return true;
  opilio_text texts[] = {opilio_json_to_text(expected), opilio_json_to_text(&result.answer)};
  fprintf(stderr, "%.*s: expected %.*s\nanswered %.*s\n", (int)current.len, current.ptr, (int)texts[0].len, texts[0].ptr,
          (int)texts[1].len, texts[1].ptr);
  return false;
}

static int ends_in_json(const struct dirent *entry) {
  size_t length = strlen(entry->d_name);
  return length > 5 && strcmp(entry->d_name + length - 5, ".json") == 0;
}

static bool has_id(opilio_text id, const opilio_json *all) {
  for (size_t n = 0; n < all->length; n++) {
    opilio_text known = opilio_json_text(member(&all->items[n], "id"), OPILIO_TEXT(""));
    if (known.len == id.len && memcmp(known.ptr, id.ptr, id.len) == 0) return true;
  }
  return false;
}

opilio_test_result opilio_test_cases(const char *folder) {
  opilio_test_result result = {0};
  opilio_json all = opilio_json_empty(OPILIO_JSON_LIST);
  struct dirent **files;
  int length = scandir(folder, &files, ends_in_json, alphasort);
  for (int n = 0; n < length; n++) {
    const char *path = opilio_format("%s/%s", folder, files[n]->d_name).ptr;
    const opilio_json *some = opilio_json_read(contents(path));
    if (!some || some->type != OPILIO_JSON_LIST) {
      fprintf(stderr, "%s: not a JSON list of cases\n", path);
      result.failed++;
    }
    for (size_t at = 0; at < opilio_json_length(some); at++) {
      opilio_text id = opilio_json_text(member(opilio_json_item(some, at), "id"), OPILIO_TEXT(""));
      if (has_id(id, &all)) {
        fprintf(stderr, "%s: duplicate case id %.*s\n", path, (int)id.len, id.ptr);
        result.failed++;
      }
      opilio_json_add(&all, *opilio_json_item(some, at));
    }
  }
  void (*before)(int) = signal(SIGABRT, report_abort);
  for (size_t n = 0; n < all.length; n++) result.failed += !passes(&all.items[n], folder);
  signal(SIGABRT, before);
  for (size_t n = 0; n < opilio_plugins_length; n++) {
    bool has_case = false;
    for (size_t at = 0; at < all.length; at++) {
      has_case |= opilio_is(opilio_json_text(member(&all.items[at], "plugin"), OPILIO_TEXT("")), opilio_plugins[n]->name);
    }
    if (has_case) continue;
    fprintf(stderr, "%s has no case in %s\n", opilio_plugins[n]->name, folder);
    result.failed++;
  }
  result.cases = all.length;
  return result;
}

// The default program runs the cases of a folder. Tests may define their own `main`.
__attribute__((weak)) int main(int length, char **arguments) {
  opilio_test_result result = opilio_test_cases(length > 1 ? arguments[1] : "cases");
  if (result.failed) return 1;
  printf("%zu cases passed\n", result.cases);
  return 0;
}
