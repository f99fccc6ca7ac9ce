// The test plugin of the Rust SDK, with its cases. It compares the first lines of documents, takes ranks from a table, counts
// events, and plans every action on a page.

#include <stdlib.h>
#include <string.h>

#include <opilio.h>

static opilio_comparison compare(const void *plugin, opilio_document document, opilio_visit visit, const opilio_bytes *last) {
  (void)plugin;
  opilio_text text = opilio_document_text(document);
  const char *end = memchr(text.ptr, '\n', text.len);
  opilio_text first = {text.ptr, end ? (size_t)(end - text.ptr) : text.len};
  opilio_document_set_attribute(document, "headline", first);
  opilio_visit_set_site_value(visit, "last-headline", first);
  opilio_comparison out = {.fingerprint = {(const uint8_t *)first.ptr, first.len}};
  if (!last) return out;
  bool same = last->len == first.len && memcmp(last->ptr, first.ptr, first.len) == 0;
  out.difference = same ? OPILIO_SAME : OPILIO_DIFFERS;
  out.reason = same ? OPILIO_TEXT("the same headline") : OPILIO_TEXT("another headline");
  return out;
}

static uint8_t rank_candidate(const void *plugin, const opilio_candidate *candidate, const opilio_document *document) {
  (void)plugin;
  if (opilio_candidate_seed(candidate)) return 1;
  if (opilio_candidate_is_in_table(candidate, OPILIO_TEXT("first"))) {
    opilio_row row;
    opilio_table_find(OPILIO_TEXT("first"), opilio_candidate_surt(candidate), &row);
    return (uint8_t)atoi(opilio_format("%.*s", (int)row.value.len, row.value.ptr).ptr);
  }
  return document ? (uint8_t)(10 + opilio_document_length(*document)) : 0;
}

static uint8_t rank_queue(const void *plugin, opilio_queue queue) {
  (void)plugin;
  uint8_t best;
  if (!opilio_queue_best(queue, &best)) return 0;
  return best > opilio_queue_base(queue) ? best : opilio_queue_base(queue);
}

static void observe(const void *plugin, opilio_bytes memory, const opilio_finished *events, size_t length, opilio_observation *out) {
  (void)plugin;
  uint8_t *seen = opilio_memory(1);
  *seen = (uint8_t)((memory.len ? *memory.ptr : 0) + length);
  opilio_remember(out, (opilio_bytes){seen, 1});
  for (size_t n = 0; n < length; n++) {
    opilio_line(out, "uris.txt", (opilio_text){(const char *)events[n].uri.ptr, events[n].uri.len});
  }
}

static void report(const void *plugin, opilio_bytes memory, uint64_t now, opilio_reports *out) {
  (void)plugin;
  opilio_report(out, "seen.txt", opilio_format("%d by %llu", memory.len ? *memory.ptr : 0, (unsigned long long)now));
}

static void plan_every_action(opilio_step_plan *out) {
  opilio_scroll_to_top(out);
  opilio_scroll_to_bottom(out);
  opilio_scroll_to(out, 7);
  opilio_scroll_by(out, -7);
  opilio_scroll_to_element(out, OPILIO_TEXT("#a"));
  opilio_click(out, (opilio_click_options){.selector = OPILIO_TEXT("b")});
  opilio_click(out, (opilio_click_options){OPILIO_TEXT("c"), OPILIO_TEXT("more"), 5, true});
  opilio_wait_for_selector(out, OPILIO_TEXT(".d"), 1000);
  opilio_wait_for_network(out, 2000);
  opilio_pause(out, 3);
  opilio_evaluate(out, OPILIO_TEXT("return 1"));
  opilio_screenshot(out);
  opilio_count_elements(out, OPILIO_TEXT("h1"));
  opilio_count_elements(out, OPILIO_TEXT("h2"));
  opilio_remember_for_step(out, (opilio_bytes){(const uint8_t *)"\1", 1});
}

static opilio_text joined(opilio_text one, opilio_text other) {
  return opilio_format("%.*s %.*s", (int)one.len, one.ptr, (int)other.len, other.ptr);
}

static opilio_text count(opilio_page page, opilio_text selector) {
  uint64_t found;
  if (!opilio_page_count(page, selector, &found)) return OPILIO_TEXT("none");
  return opilio_format("%u", (unsigned)found);
}

static void step(const void *plugin, opilio_page page, opilio_visit visit, opilio_bytes memory, opilio_step_plan *out) {
  (void)plugin;
  if (opilio_page_step(page) == 0) {
    plan_every_action(out);
    return;
  }
  opilio_text facts = joined(opilio_page_uri(page), opilio_page_title(page));
  facts = joined(facts, opilio_format("%u %u %u %u", (unsigned)opilio_page_elements(page), (unsigned)opilio_page_scroll_top(page),
                                      (unsigned)opilio_page_time_left(page), opilio_page_steps_left(page)));
  facts = joined(joined(facts, count(page, OPILIO_TEXT("h1"))), count(page, OPILIO_TEXT("h2")));
  uint8_t *seen = opilio_memory(1);
  *seen = memory.len ? *memory.ptr : 0;
  const opilio_action_result *results;
  size_t length = opilio_page_results(page, &results);
  for (size_t n = 0; n < length; n++) {
    *seen += (uint8_t)results[n].clicked;
    bool has_text = results[n].kind == OPILIO_RESULT_VALUE || results[n].kind == OPILIO_RESULT_EXCEPTION;
    if (has_text) facts = joined(facts, results[n].text);
  }
  opilio_evaluate(out, joined(facts, opilio_candidate_uri(opilio_visit_candidate(visit))));
  opilio_remember_for_step(out, (opilio_bytes){seen, 1});
  opilio_finish_page(out);
}

static const opilio_keep keeps[] = {
    {.name = "headline", .keeper = OPILIO_WITH_URI, .version = 2},
    {.name = "last-headline", .keeper = OPILIO_WITH_SITE, .version = 1},
};

static const opilio_plugin headline = {
    .name = "headline",
    .version = "1.0.0",
    .summary = "For tests.",
    .keeps = keeps,
    .keeps_length = 2,
    .compare = compare,
    .rank_candidate = rank_candidate,
    .rank_queue = rank_queue,
    .observe = observe,
    .report = report,
    .step = step,
};

OPILIO_EXPORT(&headline);
