// The plugin that the Rust SDK tests its kinds with, and its cases: a document is the same while its first line is; what
// its URI's table says comes first; what has been seen is counted.

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
};

OPILIO_EXPORT(&headline);
