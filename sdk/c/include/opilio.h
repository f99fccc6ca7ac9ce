// The SDK for Opilio plugins in C. A plugin is a table of functions and a line OPILIO_EXPORT. README.md has a complete example.
//
// Texts and bytes are slices, not terminated by a zero byte. Arguments and results of these functions are valid for the whole
// call, and nothing needs to be freed: each call has its own memory, which the host discards. `configure` runs before all calls,
// perhaps more than once. Each call finds its result unchanged.
#ifndef OPILIO_H
#define OPILIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "plugin.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- texts and memory

typedef struct {
  const char *ptr;
  size_t len;
} opilio_text;

typedef struct {
  const uint8_t *ptr;
  size_t len;
} opilio_bytes;

// The text of a string literal: OPILIO_TEXT("href"). opilio_text_of is for other zero-terminated strings.
#ifdef __cplusplus
#define OPILIO_TEXT(literal) (opilio_text{"" literal, sizeof(literal) - 1})
#else
#define OPILIO_TEXT(literal) ((opilio_text){"" literal, sizeof(literal) - 1})
#endif
opilio_text opilio_text_of(const char *text);
bool opilio_is(opilio_text text, const char *other);
bool opilio_contains(opilio_text text, opilio_text part);
// Formats a text as printf does.
opilio_text opilio_format(const char *format, ...) __attribute__((format(printf, 1, 2)));
// Returns zeroed memory. If the memory is exhausted, the call ends with the error "out of memory".
void *opilio_memory(size_t size);

// ---- log and counters

typedef enum { OPILIO_DEBUG, OPILIO_INFO, OPILIO_WARN, OPILIO_ERROR } opilio_level;

// Writes a line to the plugin's log.
void opilio_log(opilio_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));
// Ends the call with a plugin error that has this message.
void opilio_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
// Adds n to the plugin's counter of this name.
void opilio_count(const char *name, uint64_t n);

// ---- settings

typedef struct opilio_json opilio_json;

// Returns NULL if the text is invalid JSON. Missing members and items are NULL. All functions accept NULL.
const opilio_json *opilio_json_read(opilio_text text);
const opilio_json *opilio_json_member(const opilio_json *object, const char *name);
size_t opilio_json_length(const opilio_json *list);
const opilio_json *opilio_json_item(const opilio_json *list, size_t at);
opilio_text opilio_json_text(const opilio_json *json, opilio_text otherwise);
double opilio_json_number(const opilio_json *json, double otherwise);
bool opilio_json_boolean(const opilio_json *json, bool otherwise);

typedef struct opilio_faults opilio_faults;

// Reports an error in a setting. The pointer is a JSON Pointer such as "/names/0". Both texts may come from opilio_format.
void opilio_fault(opilio_faults *faults, opilio_text pointer, opilio_text problem);

// ---- documents

typedef opilio_plugin_documents_borrow_document_t opilio_document;
typedef opilio_plugin_types_kept_value_t opilio_kept;

typedef struct {
  opilio_text name;
  opilio_text value;
} opilio_header;

opilio_text opilio_document_uri(opilio_document document);
opilio_text opilio_document_base(opilio_document document);
int32_t opilio_document_status(opilio_document document);
// Sets *headers to all headers and returns their number.
size_t opilio_document_headers(opilio_document document, const opilio_header **headers);
// Sets *value to the first value of a header. Returns false if the header is missing.
bool opilio_document_header(opilio_document document, const char *name, opilio_text *value);
opilio_text opilio_document_media_type(opilio_document document);
bool opilio_document_charset(opilio_document document, opilio_text *charset);
// Sets *context to the position of a fragment, such as `script`. Returns false for a whole document.
bool opilio_document_fragment(opilio_document document, opilio_text *context);
uint64_t opilio_document_length(opilio_document document);
opilio_bytes opilio_document_read(opilio_document document, uint64_t offset, uint32_t length);
opilio_text opilio_document_text(opilio_document document);
bool opilio_document_note(opilio_document document, const char *name, opilio_text *value);
void opilio_document_set_note(opilio_document document, const char *name, opilio_text value);
void opilio_document_annotate(opilio_document document, opilio_text annotation);
// Kept values: values that the plugin keeps with the URI, and with its site, until later visits. An empty value removes the kept
// one.
bool opilio_document_attribute(opilio_document document, const char *name, uint32_t *version, opilio_text *value);
void opilio_document_set_attribute(opilio_document document, const char *name, opilio_text value);
bool opilio_document_site_value(opilio_document document, const char *name, uint32_t *version, opilio_text *value);
void opilio_document_set_site_value(opilio_document document, const char *name, opilio_text value);

// ---- candidates

// A URI that may become part of the crawl. Its values are copied from the host when a function first reads them.
typedef struct opilio_candidate opilio_candidate;

opilio_text opilio_candidate_uri(const opilio_candidate *candidate);
opilio_text opilio_candidate_surt(const opilio_candidate *candidate);
opilio_text opilio_candidate_hop_path(const opilio_candidate *candidate);
opilio_text opilio_candidate_context(const opilio_candidate *candidate);
// Via, its SURT form, source and address are empty if the candidate has no such value.
opilio_text opilio_candidate_via(const opilio_candidate *candidate);
opilio_text opilio_candidate_via_surt(const opilio_candidate *candidate);
opilio_text opilio_candidate_source(const opilio_candidate *candidate);
opilio_text opilio_candidate_address(const opilio_candidate *candidate);
bool opilio_candidate_seed(const opilio_candidate *candidate);
bool opilio_candidate_attribute(const opilio_candidate *candidate, const char *name, opilio_text *value);

// ---- visits and queues

typedef opilio_plugin_documents_borrow_visit_t opilio_visit;
typedef opilio_plugin_documents_borrow_queue_t opilio_queue;
typedef opilio_plugin_types_past_visit_t opilio_past_visit;
typedef opilio_plugin_types_neighbourhood_t opilio_neighbourhood;
typedef opilio_plugin_types_signal_t opilio_signal;

typedef enum { OPILIO_NEW, OPILIO_CHANGED, OPILIO_UNCHANGED, OPILIO_UNKNOWN } opilio_state;

const opilio_candidate *opilio_visit_candidate(opilio_visit visit);
// Milliseconds since 1970.
uint64_t opilio_visit_now(opilio_visit visit);
int32_t opilio_visit_status(opilio_visit visit);
opilio_text opilio_visit_media_type(opilio_visit visit);
opilio_state opilio_visit_state(opilio_visit visit);
bool opilio_visit_size(opilio_visit visit, uint64_t *size);
// Durations are milliseconds.
bool opilio_visit_last_wait(opilio_visit visit, uint64_t *wait);
uint64_t opilio_visit_overdue(opilio_visit visit);
uint64_t opilio_visit_visits(opilio_visit visit);
uint64_t opilio_visit_versions(opilio_visit visit);
// Sets *history to earlier visits, newest first, and returns their number.
size_t opilio_visit_history(opilio_visit visit, const opilio_past_visit **history);
bool opilio_visit_validator(opilio_visit visit, const char *name, opilio_text *value);
uint64_t opilio_visit_outlinks(opilio_visit visit);
uint64_t opilio_visit_inlinks(opilio_visit visit);
size_t opilio_visit_signals(opilio_visit visit, const opilio_signal **signals);
size_t opilio_visit_neighbourhood(opilio_visit visit, const opilio_neighbourhood **neighbourhood);
bool opilio_visit_measure(opilio_visit visit, const char *name, double *value);
bool opilio_visit_note(opilio_visit visit, const char *name, opilio_text *value);
bool opilio_visit_attribute(opilio_visit visit, const char *name, uint32_t *version, opilio_text *value);
void opilio_visit_set_attribute(opilio_visit visit, const char *name, opilio_text value);
bool opilio_visit_site_value(opilio_visit visit, const char *name, uint32_t *version, opilio_text *value);
void opilio_visit_set_site_value(opilio_visit visit, const char *name, opilio_text value);

opilio_text opilio_queue_name(opilio_queue queue);
uint64_t opilio_queue_queued(opilio_queue queue);
uint64_t opilio_queue_succeeded(opilio_queue queue);
uint64_t opilio_queue_failed(opilio_queue queue);
uint64_t opilio_queue_bytes(opilio_queue queue);
bool opilio_queue_best(opilio_queue queue, uint8_t *precedence);
uint8_t opilio_queue_base(opilio_queue queue);
uint64_t opilio_queue_now(opilio_queue queue);

// ---- pages in a browser

// A page as it was just before the call. Lengths are CSS pixels of the page's own frame.
typedef opilio_plugin_documents_borrow_page_t opilio_page;

typedef enum {
  OPILIO_RESULT_DONE, OPILIO_RESULT_CLICKED, OPILIO_RESULT_VALUE, OPILIO_RESULT_NO_ELEMENT, OPILIO_RESULT_NOT_IDLE,
  OPILIO_RESULT_INVALID, OPILIO_RESULT_EXCEPTION, OPILIO_RESULT_REFUSED, OPILIO_RESULT_OTHER
} opilio_result_kind;

// The result of an action.
typedef struct {
  opilio_result_kind kind;
  // Number of clicked elements.
  uint32_t clicked;
  // The JSON of a value, the error or reason of other results, or the name of a result of a later contract.
  opilio_text text;
} opilio_action_result;

opilio_text opilio_page_uri(opilio_page page);
opilio_text opilio_page_title(opilio_page page);
uint64_t opilio_page_elements(opilio_page page);
// Length of the visible text in UTF-16 code units.
uint64_t opilio_page_text_length(opilio_page page);
uint64_t opilio_page_scroll_height(opilio_page page);
uint64_t opilio_page_scroll_top(opilio_page page);
uint64_t opilio_page_window_height(opilio_page page);
// Sets *count to the number of elements that match a selector of the last step's opilio_count_elements. Returns false if the
// selector is invalid, and if the last step did not name it.
bool opilio_page_count(opilio_page page, opilio_text selector, uint64_t *count);
// Sets *results to those of the last step's actions, in the same order, and returns their number.
size_t opilio_page_results(opilio_page page, const opilio_action_result **results);
uint32_t opilio_page_requests_in_flight(opilio_page page);
// Time since the page was opened, and until the host ends the behaviours.
uint64_t opilio_page_time_used(opilio_page page);
uint64_t opilio_page_time_left(opilio_page page);
// Number of this step; 0 is the one after loading.
uint32_t opilio_page_step(opilio_page page);
// Number of steps that may follow this one.
uint32_t opilio_page_steps_left(opilio_page page);

// ---- tables of the host

typedef struct {
  opilio_text key;
  opilio_text value;
} opilio_row;

bool opilio_table_find(opilio_text table, opilio_text key, opilio_row *row);
bool opilio_candidate_is_in_table(const opilio_candidate *candidate, opilio_text table);

// ---- answers

typedef enum {
  OPILIO_LINK, OPILIO_EMBED, OPILIO_SPECULATIVE, OPILIO_REDIRECT, OPILIO_PREREQUISITE, OPILIO_INFERRED, OPILIO_MANIFEST,
  OPILIO_SUBMIT
} opilio_hop;

typedef struct opilio_extraction opilio_extraction;
typedef opilio_plugin_types_link_t opilio_link_record;
typedef opilio_plugin_types_fragment_t opilio_fragment_record;

// Adds a link with copies of the texts. Set a base or details on the returned record before you add the next link.
opilio_link_record *opilio_link(opilio_extraction *out, opilio_text uri, opilio_hop hop, opilio_text context);
// Adds a fragment: a span of the document's bytes, a span of its text, or a text of its own.
opilio_fragment_record *opilio_fragment_bytes_at(opilio_extraction *out, const char *media_type, uint64_t offset, uint64_t length,
                                                 opilio_text context);
opilio_fragment_record *opilio_fragment_text_at(opilio_extraction *out, const char *media_type, uint64_t offset, uint64_t length,
                                                opilio_text context);
opilio_fragment_record *opilio_fragment_text(opilio_extraction *out, const char *media_type, opilio_text text, opilio_text context);
// Sets the base that the document declares, for this and later extractors: a URI reference.
void opilio_base(opilio_extraction *out, opilio_text base);
// Skips the extractors that the profile lists as last resort.
void opilio_finished_with(opilio_extraction *out);
// Describes a part that could not be read, for the log. The host still uses the other results.
void opilio_problem(opilio_extraction *out, opilio_text problem);

typedef enum {
  OPILIO_SCOPE, OPILIO_PRE_FETCH, OPILIO_MID_FETCH, OPILIO_POST_FETCH, OPILIO_EXTRACT, OPILIO_RENDER, OPILIO_ARCHIVE,
  OPILIO_PLUGIN, OPILIO_OTHER_STAGE
} opilio_stage;

typedef exports_opilio_plugin_filter_ruling_t opilio_ruling;

// Reasons are for people and may be empty.
opilio_ruling opilio_accept(opilio_text reason);
opilio_ruling opilio_reject(opilio_text reason);
opilio_ruling opilio_pass(void);
// Only at the stage mid-fetch: the headers show that nothing has changed. The body is not fetched.
opilio_ruling opilio_unchanged(opilio_text reason);
// Only at the stage post-fetch: the URI is fetched again after this time in milliseconds.
opilio_ruling opilio_retry(uint64_t after, opilio_text reason);

typedef struct opilio_spans opilio_spans;

void opilio_span(opilio_spans *out, uint64_t offset, uint64_t length);
// These functions decline the document. The host then compares its payload digest with that of the last version. `limit` is the
// number of bytes that the document exceeds.
void opilio_too_large(opilio_spans *out, uint64_t limit);
void opilio_strip_problem(opilio_spans *out, opilio_text problem);

typedef enum { OPILIO_NO_ANSWER, OPILIO_DIFFERS, OPILIO_SAME } opilio_difference;

typedef struct {
  opilio_difference difference;
  opilio_bytes fingerprint;
  opilio_text reason;
} opilio_comparison;

typedef struct {
  // Milliseconds from now until the next visit.
  uint64_t next_visit;
  // Milliseconds from now until the host calls the evaluator again, without a visit. The host cuts it to next_visit. 0: no such
  // call.
  uint64_t ask_again;
} opilio_wait;

typedef exports_opilio_plugin_observer_finished_t opilio_finished;
typedef struct opilio_observation opilio_observation;
typedef struct opilio_reports opilio_reports;

void opilio_remember(opilio_observation *out, opilio_bytes memory);
void opilio_line(opilio_observation *out, const char *file, opilio_text text);
void opilio_report(opilio_reports *out, const char *file, opilio_text content);

typedef struct opilio_step_plan opilio_step_plan;

typedef struct {
  // CSS selector.
  opilio_text selector;
  // Regular expression (JavaScript syntax, case ignored) for the element's text or label. Empty: any element.
  opilio_text text;
  // Number of elements to click. 0 means 1.
  uint32_t at_most;
  // Skips elements that an earlier action clicked.
  bool only_new;
} opilio_click_options;

// These functions add an action to a step. The next step gets its result. Times are milliseconds.
void opilio_scroll_to_top(opilio_step_plan *out);
void opilio_scroll_to_bottom(opilio_step_plan *out);
// Scrolls to this distance from the top of the page, in CSS pixels.
void opilio_scroll_to(opilio_step_plan *out, uint32_t pixels);
// Scrolls down by this number of CSS pixels; up if it is negative.
void opilio_scroll_by(opilio_step_plan *out, int32_t pixels);
void opilio_scroll_to_element(opilio_step_plan *out, opilio_text selector);
// Clicks visible elements, in document order.
void opilio_click(opilio_step_plan *out, opilio_click_options click);
void opilio_wait_for_selector(opilio_step_plan *out, opilio_text selector, uint64_t at_most);
void opilio_wait_for_network(opilio_step_plan *out, uint64_t at_most);
void opilio_pause(opilio_step_plan *out, uint64_t time);
// Runs the body of an async function in the page. The result is OPILIO_RESULT_VALUE with the returned value as JSON.
void opilio_evaluate(opilio_step_plan *out, opilio_text script);
void opilio_screenshot(opilio_step_plan *out);

// Names a CSS selector for opilio_page_count at the next step.
void opilio_count_elements(opilio_step_plan *out, opilio_text selector);
// Sets the data that the next step gets as `memory`.
void opilio_remember_for_step(opilio_step_plan *out, opilio_bytes memory);
// Ends the behaviour after the actions of this step.
void opilio_finish_page(opilio_step_plan *out);

// ---- the plugin

typedef struct {
  const char *name;
  // OPILIO_WITH_URI or OPILIO_WITH_SITE.
  enum { OPILIO_WITH_URI, OPILIO_WITH_SITE } keeper;
  uint32_t version;
} opilio_keep;

// A plugin: its description and its functions. The functions that are set determine its kinds.
typedef struct {
  const char *name;
  const char *version;
  const char *summary;
  // JSON Schema of the settings. NULL: the plugin has no settings.
  const char *settings_schema;
  // NULL-terminated lists of media types and regular expressions. NULL: the plugin is called for all documents.
  const char *const *media_types;
  const char *const *uris;
  const opilio_keep *keeps;
  size_t keeps_length;

  // Called before all other functions, perhaps more than once. Returns the value that every call gets as `plugin`. May be NULL.
  void *(*configure)(const opilio_json *settings, opilio_faults *faults);

  void (*extract)(const void *plugin, opilio_document document, opilio_extraction *out);
  opilio_ruling (*judge_candidate)(const void *plugin, opilio_stage stage, const opilio_candidate *candidate);
  // If this is NULL, judge_candidate judges documents by their URI.
  opilio_ruling (*judge_document)(const void *plugin, opilio_stage stage, opilio_document document, opilio_visit visit);
  void (*strip)(const void *plugin, opilio_document document, opilio_spans *out);
  // `last` is NULL at the first visit.
  opilio_comparison (*compare)(const void *plugin, opilio_document document, opilio_visit visit, const opilio_bytes *last);
  // False leaves the answer to the next evaluator.
  bool (*evaluate)(const void *plugin, opilio_visit visit, opilio_wait *out);
  // Ranks go from 1 (first) to 255 (last). 0 leaves the answer to the next plugin. The document is NULL for seeds.
  uint8_t (*rank_candidate)(const void *plugin, const opilio_candidate *candidate, const opilio_document *document);
  uint8_t (*rank_queue)(const void *plugin, opilio_queue queue);
  void (*observe)(const void *plugin, opilio_bytes memory, const opilio_finished *events, size_t length, opilio_observation *out);
  void (*report)(const void *plugin, opilio_bytes memory, uint64_t now, opilio_reports *out);
  // Page behaviour. `memory` is that of the last step on the page; empty at the first.
  void (*step)(const void *plugin, opilio_page page, opilio_visit visit, opilio_bytes memory, opilio_step_plan *out);
} opilio_plugin;

// Exports the plugins of the component: OPILIO_EXPORT(&one, &another). Use it once in a component.
extern const opilio_plugin *const opilio_plugins[];
extern const size_t opilio_plugins_length;
#define OPILIO_EXPORT(...)                                       \
  const opilio_plugin *const opilio_plugins[] = {__VA_ARGS__};   \
  const size_t opilio_plugins_length = sizeof opilio_plugins / sizeof *opilio_plugins

#ifdef __cplusplus
}
#endif

#endif
