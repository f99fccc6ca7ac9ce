// Answers, put together item by item.

#include <string.h>

#include "inner.h"

// One more item at the end of a generated list.
#define ADDED(list, room) \
  (opilio_grow((void **)&(list)->ptr, (list)->len, (room), sizeof *(list)->ptr), &(list)->ptr[(list)->len++])

void opilio_fault(opilio_faults *faults, opilio_text pointer, opilio_text problem) {
  size_t room = faults->list.len;
  exports_opilio_plugin_setup_settings_fault_t *fault = ADDED(&faults->list, &room);
  fault->pointer = opilio_owned(pointer);
  fault->problem = opilio_owned(problem);
}

opilio_link_record *opilio_link(opilio_extraction *out, opilio_text uri, opilio_hop hop, opilio_text context) {
  opilio_link_record *link = ADDED(&out->answer->links, &out->links_room);
  memset(link, 0, sizeof *link);
  link->uri = opilio_owned(uri);
  link->hop.tag = (uint8_t)hop;
  link->context = opilio_owned(context);
  return link;
}

static opilio_fragment_record *fragment(opilio_extraction *out, const char *media_type, opilio_text context) {
  opilio_fragment_record *fragment = ADDED(&out->answer->fragments, &out->fragments_room);
  memset(fragment, 0, sizeof *fragment);
  fragment->media_type = opilio_owned(opilio_text_of(media_type));
  fragment->context = opilio_owned(context);
  return fragment;
}

opilio_fragment_record *opilio_fragment_bytes_at(opilio_extraction *out, const char *media_type, uint64_t offset, uint64_t length,
                                                 opilio_text context) {
  opilio_fragment_record *added = fragment(out, media_type, context);
  added->content.tag = OPILIO_PLUGIN_TYPES_FRAGMENT_CONTENT_BYTES_AT;
  added->content.val.bytes_at = (opilio_plugin_types_span_t){offset, length};
  return added;
}

opilio_fragment_record *opilio_fragment_text_at(opilio_extraction *out, const char *media_type, uint64_t offset, uint64_t length,
                                                opilio_text context) {
  opilio_fragment_record *added = fragment(out, media_type, context);
  added->content.tag = OPILIO_PLUGIN_TYPES_FRAGMENT_CONTENT_TEXT_AT;
  added->content.val.text_at = (opilio_plugin_types_span_t){offset, length};
  return added;
}

opilio_fragment_record *opilio_fragment_text(opilio_extraction *out, const char *media_type, opilio_text text, opilio_text context) {
  opilio_fragment_record *added = fragment(out, media_type, context);
  added->content.tag = OPILIO_PLUGIN_TYPES_FRAGMENT_CONTENT_TEXT;
  added->content.val.text = opilio_owned(text);
  return added;
}

void opilio_base(opilio_extraction *out, opilio_text base) {
  out->answer->base.is_some = true;
  out->answer->base.val = opilio_owned(base);
}

void opilio_finished_with(opilio_extraction *out) { out->answer->finished = true; }

void opilio_problem(opilio_extraction *out, opilio_text problem) {
  out->answer->problem.is_some = true;
  out->answer->problem.val = opilio_owned(problem);
}

static opilio_ruling ruling(uint8_t verdict, opilio_text reason) {
  opilio_ruling ruling = {.verdict = {.tag = verdict}, .reason = opilio_owned(reason)};
  return ruling;
}

opilio_ruling opilio_accept(opilio_text reason) { return ruling(EXPORTS_OPILIO_PLUGIN_FILTER_VERDICT_ACCEPT, reason); }

opilio_ruling opilio_reject(opilio_text reason) { return ruling(EXPORTS_OPILIO_PLUGIN_FILTER_VERDICT_REJECT, reason); }

opilio_ruling opilio_pass(void) { return ruling(EXPORTS_OPILIO_PLUGIN_FILTER_VERDICT_PASS, OPILIO_TEXT("")); }

opilio_ruling opilio_unchanged(opilio_text reason) { return ruling(EXPORTS_OPILIO_PLUGIN_FILTER_VERDICT_UNCHANGED, reason); }

opilio_ruling opilio_retry(uint64_t after, opilio_text reason) {
  opilio_ruling retry = ruling(EXPORTS_OPILIO_PLUGIN_FILTER_VERDICT_RETRY, reason);
  retry.verdict.val.retry = after;
  return retry;
}

void opilio_span(opilio_spans *out, uint64_t offset, uint64_t length) {
  *ADDED(&out->list, &out->room) = (opilio_plugin_types_span_t){offset, length};
}

void opilio_too_large(opilio_spans *out, uint64_t size) {
  out->failed = true;
  out->problem.tag = EXPORTS_OPILIO_PLUGIN_DIGEST_STRIPPER_STRIP_PROBLEM_TOO_LARGE;
  out->problem.val.too_large = size;
}

void opilio_strip_problem(opilio_spans *out, opilio_text problem) {
  out->failed = true;
  out->problem.tag = EXPORTS_OPILIO_PLUGIN_DIGEST_STRIPPER_STRIP_PROBLEM_OTHER;
  out->problem.val.other = opilio_owned(problem);
}

void opilio_remember(opilio_observation *out, opilio_bytes memory) { out->answer->memory = opilio_owned_bytes(memory); }

void opilio_line(opilio_observation *out, const char *file, opilio_text text) {
  exports_opilio_plugin_observer_line_t *line = ADDED(&out->answer->lines, &out->room);
  line->file = opilio_owned(opilio_text_of(file));
  line->text = opilio_owned(text);
}

void opilio_report(opilio_reports *out, const char *file, opilio_text content) {
  exports_opilio_plugin_observer_report_file_t *report = ADDED(out->answer, &out->room);
  report->file = opilio_owned(opilio_text_of(file));
  report->content = opilio_owned(content);
}
