// Answers of plugins, built item by item.

#include <string.h>

#include "inner.h"

// Adds an item to a generated list and returns its address.
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

void opilio_too_large(opilio_spans *out, uint64_t limit) {
  out->failed = true;
  out->problem.tag = EXPORTS_OPILIO_PLUGIN_DIGEST_STRIPPER_STRIP_PROBLEM_TOO_LARGE;
  out->problem.val.too_large = limit;
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

typedef exports_opilio_plugin_page_behavior_action_t action;

static action *add_action(opilio_step_plan *out, uint8_t tag) {
  action *added = ADDED(&out->answer->actions, &out->actions_room);
  memset(added, 0, sizeof *added);
  added->tag = tag;
  return added;
}

static exports_opilio_plugin_page_behavior_scroll_target_t *scroll(opilio_step_plan *out, uint8_t target) {
  action *added = add_action(out, EXPORTS_OPILIO_PLUGIN_PAGE_BEHAVIOR_ACTION_SCROLL);
  added->val.scroll.tag = target;
  return &added->val.scroll;
}

void opilio_scroll_to_top(opilio_step_plan *out) { scroll(out, EXPORTS_OPILIO_PLUGIN_PAGE_BEHAVIOR_SCROLL_TARGET_TOP); }

void opilio_scroll_to_bottom(opilio_step_plan *out) { scroll(out, EXPORTS_OPILIO_PLUGIN_PAGE_BEHAVIOR_SCROLL_TARGET_BOTTOM); }

void opilio_scroll_to(opilio_step_plan *out, uint32_t pixels) {
  scroll(out, EXPORTS_OPILIO_PLUGIN_PAGE_BEHAVIOR_SCROLL_TARGET_TO)->val.to = pixels;
}

void opilio_scroll_by(opilio_step_plan *out, int32_t pixels) {
  scroll(out, EXPORTS_OPILIO_PLUGIN_PAGE_BEHAVIOR_SCROLL_TARGET_BY)->val.by = pixels;
}

void opilio_scroll_to_element(opilio_step_plan *out, opilio_text selector) {
  scroll(out, EXPORTS_OPILIO_PLUGIN_PAGE_BEHAVIOR_SCROLL_TARGET_ELEMENT)->val.element = opilio_owned(selector);
}

void opilio_click(opilio_step_plan *out, opilio_click_options click) {
  action *added = add_action(out, EXPORTS_OPILIO_PLUGIN_PAGE_BEHAVIOR_ACTION_CLICK);
  added->val.click.selector = opilio_owned(click.selector);
  added->val.click.text.is_some = click.text.len != 0;
  if (click.text.len) added->val.click.text.val = opilio_owned(click.text);
  added->val.click.at_most = click.at_most ? click.at_most : 1;
  added->val.click.only_new = click.only_new;
}

void opilio_wait_for_selector(opilio_step_plan *out, opilio_text selector, uint64_t at_most) {
  action *added = add_action(out, EXPORTS_OPILIO_PLUGIN_PAGE_BEHAVIOR_ACTION_WAIT_FOR_SELECTOR);
  added->val.wait_for_selector.selector = opilio_owned(selector);
  added->val.wait_for_selector.at_most = at_most;
}

void opilio_wait_for_network(opilio_step_plan *out, uint64_t at_most) {
  add_action(out, EXPORTS_OPILIO_PLUGIN_PAGE_BEHAVIOR_ACTION_WAIT_FOR_NETWORK)->val.wait_for_network = at_most;
}

void opilio_pause(opilio_step_plan *out, uint64_t time) {
  add_action(out, EXPORTS_OPILIO_PLUGIN_PAGE_BEHAVIOR_ACTION_WAIT)->val.wait = time;
}

void opilio_evaluate(opilio_step_plan *out, opilio_text script) {
  add_action(out, EXPORTS_OPILIO_PLUGIN_PAGE_BEHAVIOR_ACTION_EVALUATE)->val.evaluate = opilio_owned(script);
}

void opilio_screenshot(opilio_step_plan *out) { add_action(out, EXPORTS_OPILIO_PLUGIN_PAGE_BEHAVIOR_ACTION_SCREENSHOT); }

void opilio_count_elements(opilio_step_plan *out, opilio_text selector) {
  *ADDED(&out->answer->count, &out->count_room) = opilio_owned(selector);
}

void opilio_remember_for_step(opilio_step_plan *out, opilio_bytes memory) { out->answer->memory = opilio_owned_bytes(memory); }

void opilio_finish_page(opilio_step_plan *out) { out->answer->finished = true; }
