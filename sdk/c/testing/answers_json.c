// Answers as JSON with the contract's names, as in cases.

#include "testing.h"

// Returns a generated list as a JSON list.
#define LIST(from, as)                                                                       \
  opilio_json list = opilio_json_empty(OPILIO_JSON_LIST);                                    \
  for (size_t n = 0; n < (from)->len; n++) opilio_json_add(&list, as(&(from)->ptr[n]));      \
  return list

static opilio_json text(plugin_string_t of) { return opilio_json_of_text(opilio_borrowed(of)); }

static opilio_json bytes(plugin_list_u8_t of) { return opilio_json_of_bytes((opilio_bytes){of.ptr, of.len}); }

// A variant with a value.
static opilio_json variant(const char *name, opilio_json value) {
  opilio_json made = opilio_json_empty(OPILIO_JSON_OBJECT);
  opilio_json_set(&made, name, value);
  return made;
}

static void set_if(opilio_json *object, const char *name, plugin_option_string_t of) {
  if (of.is_some) opilio_json_set(object, name, text(of.val));
}

static opilio_json fault(const exports_opilio_plugin_setup_settings_fault_t *of) {
  opilio_json made = opilio_json_empty(OPILIO_JSON_OBJECT);
  opilio_json_set(&made, "pointer", text(of->pointer));
  opilio_json_set(&made, "problem", text(of->problem));
  return made;
}

opilio_json opilio_answer_faults(const exports_opilio_plugin_setup_list_settings_fault_t *faults) { LIST(faults, fault); }

static opilio_json named_value(const opilio_plugin_types_named_value_t *of) {
  opilio_json made = opilio_json_empty(OPILIO_JSON_OBJECT);
  opilio_json_set(&made, "name", text(of->name));
  opilio_json_set(&made, "value", text(of->value));
  return made;
}

static opilio_json named_values(const opilio_plugin_types_list_named_value_t *of) { LIST(of, named_value); }

static opilio_json details(const opilio_plugin_types_link_details_t *of) {
  opilio_json made = opilio_json_empty(OPILIO_JSON_OBJECT);
  if (of->submission.is_some) {
    opilio_json form = opilio_json_empty(OPILIO_JSON_OBJECT);
    opilio_json_set(&form, "method", text(of->submission.val.method));
    opilio_json_set(&form, "content-type", text(of->submission.val.content_type));
    opilio_json_set(&form, "body", bytes(of->submission.val.body));
    opilio_json_set(&made, "submission", form);
  }
  if (of->dates.is_some) {
    opilio_json dates = opilio_json_empty(OPILIO_JSON_OBJECT);
    opilio_plugin_types_date_signal_t given = of->dates.val;
    if (given.published.is_some) opilio_json_set(&dates, "published", opilio_json_of_number((double)given.published.val));
    if (given.modified.is_some) opilio_json_set(&dates, "modified", opilio_json_of_number((double)given.modified.val));
    opilio_json_set(&made, "dates", dates);
  }
  opilio_json_set(&made, "attributes", named_values(&of->attributes));
  return made;
}

static opilio_json hop(const opilio_plugin_types_hop_t *of) {
  static const char *const hops[] = {"link", "embed", "speculative", "redirect", "prerequisite", "inferred", "manifest", "submit"};
  if (of->tag >= sizeof hops / sizeof *hops) return variant("other", text(of->val.other));
  return opilio_json_of_text(opilio_text_of(hops[of->tag]));
}

static opilio_json link_of(const opilio_plugin_types_link_t *of) {
  opilio_json made = opilio_json_empty(OPILIO_JSON_OBJECT);
  opilio_json_set(&made, "uri", text(of->uri));
  opilio_json_set(&made, "hop", hop(&of->hop));
  opilio_json_set(&made, "context", text(of->context));
  set_if(&made, "base", of->base);
  if (of->details.is_some) opilio_json_set(&made, "details", details(&of->details.val));
  return made;
}

static opilio_json span(const opilio_plugin_types_span_t *of) {
  opilio_json made = opilio_json_empty(OPILIO_JSON_OBJECT);
  opilio_json_set(&made, "offset", opilio_json_of_number((double)of->offset));
  opilio_json_set(&made, "length", opilio_json_of_number((double)of->length));
  return made;
}

static opilio_json content(const opilio_plugin_types_fragment_content_t *of) {
  switch (of->tag) {
    case OPILIO_PLUGIN_TYPES_FRAGMENT_CONTENT_BYTES_AT: return variant("bytes-at", span(&of->val.bytes_at));
    case OPILIO_PLUGIN_TYPES_FRAGMENT_CONTENT_TEXT_AT: return variant("text-at", span(&of->val.text_at));
    case OPILIO_PLUGIN_TYPES_FRAGMENT_CONTENT_TEXT: return variant("text", text(of->val.text));
    default: return variant("bytes", bytes(of->val.bytes));
  }
}

static opilio_json fragment(const opilio_plugin_types_fragment_t *of) {
  opilio_json made = opilio_json_empty(OPILIO_JSON_OBJECT);
  opilio_json_set(&made, "media-type", text(of->media_type));
  opilio_json_set(&made, "content", content(&of->content));
  opilio_json_set(&made, "context", text(of->context));
  set_if(&made, "base", of->base);
  return made;
}

static opilio_json links(const exports_opilio_plugin_extractor_list_link_t *of) { LIST(of, link_of); }

static opilio_json fragments(const exports_opilio_plugin_extractor_list_fragment_t *of) { LIST(of, fragment); }

static opilio_json extraction(const exports_opilio_plugin_extractor_extraction_t *of) {
  opilio_json made = opilio_json_empty(OPILIO_JSON_OBJECT);
  opilio_json_set(&made, "links", links(&of->links));
  opilio_json_set(&made, "fragments", fragments(&of->fragments));
  set_if(&made, "base", of->base);
  opilio_json_set(&made, "finished", opilio_json_of_boolean(of->finished));
  set_if(&made, "problem", of->problem);
  return made;
}

opilio_json opilio_answer_extractions(const exports_opilio_plugin_extractor_list_extraction_t *extractions) {
  LIST(extractions, extraction);
}

opilio_json opilio_answer_ruling(const exports_opilio_plugin_filter_ruling_t *of) {
  static const char *const verdicts[] = {"accept", "reject", "pass", "unchanged"};
  opilio_json made = opilio_json_empty(OPILIO_JSON_OBJECT);
  if (of->verdict.tag == EXPORTS_OPILIO_PLUGIN_FILTER_VERDICT_RETRY) {
    opilio_json_set(&made, "verdict", variant("retry", opilio_json_of_number((double)of->verdict.val.retry)));
  } else if (of->verdict.tag < sizeof verdicts / sizeof *verdicts) {
    opilio_json_set(&made, "verdict", opilio_json_of_text(opilio_text_of(verdicts[of->verdict.tag])));
  } else {
    opilio_json_set(&made, "verdict", variant("other", text(of->verdict.val.other)));
  }
  opilio_json_set(&made, "reason", text(of->reason));
  return made;
}

opilio_json opilio_answer_rulings(const exports_opilio_plugin_filter_list_ruling_t *rulings) {
  LIST(rulings, opilio_answer_ruling);
}

opilio_json opilio_answer_spans(const exports_opilio_plugin_digest_stripper_list_span_t *spans) { LIST(spans, span); }

opilio_json opilio_answer_strip_problem(const exports_opilio_plugin_digest_stripper_strip_problem_t *problem) {
  if (problem->tag == EXPORTS_OPILIO_PLUGIN_DIGEST_STRIPPER_STRIP_PROBLEM_TOO_LARGE) {
    return variant("too-large", opilio_json_of_number((double)problem->val.too_large));
  }
  return variant("other", text(problem->val.other));
}

opilio_json opilio_answer_comparison(const exports_opilio_plugin_change_evaluator_comparison_t *of) {
  opilio_json made = opilio_json_empty(OPILIO_JSON_OBJECT);
  if (of->difference.is_some) {
    bool same = of->difference.val == EXPORTS_OPILIO_PLUGIN_CHANGE_EVALUATOR_DIFFERENCE_UNCHANGED;
    opilio_json_set(&made, "difference", opilio_json_of_text(same ? OPILIO_TEXT("unchanged") : OPILIO_TEXT("changed")));
  }
  if (of->fingerprint.is_some) opilio_json_set(&made, "fingerprint", bytes(of->fingerprint.val));
  opilio_json_set(&made, "reason", text(of->reason));
  return made;
}

opilio_json opilio_answer_wait(const exports_opilio_plugin_wait_evaluator_wait_t *of) {
  opilio_json made = opilio_json_empty(OPILIO_JSON_OBJECT);
  opilio_json_set(&made, "next-visit", opilio_json_of_number((double)of->next_visit));
  if (of->ask_again.is_some) opilio_json_set(&made, "ask-again", opilio_json_of_number((double)of->ask_again.val));
  return made;
}

static opilio_json rank(const plugin_option_u8_t *of) {
  return of->is_some ? opilio_json_of_number(of->val) : opilio_json_empty(OPILIO_JSON_NULL);
}

opilio_json opilio_answer_ranks(const plugin_list_option_u8_t *ranks) { LIST(ranks, rank); }

static opilio_json line(const exports_opilio_plugin_observer_line_t *of) {
  opilio_json made = opilio_json_empty(OPILIO_JSON_OBJECT);
  opilio_json_set(&made, "file", text(of->file));
  opilio_json_set(&made, "text", text(of->text));
  return made;
}

static opilio_json lines(const exports_opilio_plugin_observer_list_line_t *of) { LIST(of, line); }

opilio_json opilio_answer_observation(const exports_opilio_plugin_observer_observation_t *of) {
  opilio_json made = opilio_json_empty(OPILIO_JSON_OBJECT);
  opilio_json_set(&made, "memory", bytes(of->memory));
  opilio_json_set(&made, "lines", lines(&of->lines));
  return made;
}

static opilio_json report(const exports_opilio_plugin_observer_report_file_t *of) {
  opilio_json made = opilio_json_empty(OPILIO_JSON_OBJECT);
  opilio_json_set(&made, "file", text(of->file));
  opilio_json_set(&made, "content", text(of->content));
  return made;
}

opilio_json opilio_answer_reports(const exports_opilio_plugin_observer_list_report_file_t *reports) { LIST(reports, report); }

static opilio_json scroll_target(const exports_opilio_plugin_page_behavior_scroll_target_t *of) {
  switch (of->tag) {
    case EXPORTS_OPILIO_PLUGIN_PAGE_BEHAVIOR_SCROLL_TARGET_TOP: return opilio_json_of_text(OPILIO_TEXT("top"));
    case EXPORTS_OPILIO_PLUGIN_PAGE_BEHAVIOR_SCROLL_TARGET_BOTTOM: return opilio_json_of_text(OPILIO_TEXT("bottom"));
    case EXPORTS_OPILIO_PLUGIN_PAGE_BEHAVIOR_SCROLL_TARGET_TO: return variant("to", opilio_json_of_number(of->val.to));
    case EXPORTS_OPILIO_PLUGIN_PAGE_BEHAVIOR_SCROLL_TARGET_BY: return variant("by", opilio_json_of_number(of->val.by));
    case EXPORTS_OPILIO_PLUGIN_PAGE_BEHAVIOR_SCROLL_TARGET_ELEMENT: return variant("element", text(of->val.element));
    default: return variant("other", text(of->val.other));
  }
}

static opilio_json click(const exports_opilio_plugin_page_behavior_click_t *of) {
  opilio_json made = opilio_json_empty(OPILIO_JSON_OBJECT);
  opilio_json_set(&made, "selector", text(of->selector));
  set_if(&made, "text", of->text);
  opilio_json_set(&made, "at-most", opilio_json_of_number(of->at_most));
  opilio_json_set(&made, "only-new", opilio_json_of_boolean(of->only_new));
  return made;
}

static opilio_json selector_wait(const exports_opilio_plugin_page_behavior_selector_wait_t *of) {
  opilio_json made = opilio_json_empty(OPILIO_JSON_OBJECT);
  opilio_json_set(&made, "selector", text(of->selector));
  opilio_json_set(&made, "at-most", opilio_json_of_number((double)of->at_most));
  return made;
}

static opilio_json action(const exports_opilio_plugin_page_behavior_action_t *of) {
  switch (of->tag) {
    case EXPORTS_OPILIO_PLUGIN_PAGE_BEHAVIOR_ACTION_SCROLL: return variant("scroll", scroll_target(&of->val.scroll));
    case EXPORTS_OPILIO_PLUGIN_PAGE_BEHAVIOR_ACTION_CLICK: return variant("click", click(&of->val.click));
    case EXPORTS_OPILIO_PLUGIN_PAGE_BEHAVIOR_ACTION_WAIT_FOR_SELECTOR:
      return variant("wait-for-selector", selector_wait(&of->val.wait_for_selector));
    case EXPORTS_OPILIO_PLUGIN_PAGE_BEHAVIOR_ACTION_WAIT_FOR_NETWORK:
      return variant("wait-for-network", opilio_json_of_number((double)of->val.wait_for_network));
    case EXPORTS_OPILIO_PLUGIN_PAGE_BEHAVIOR_ACTION_WAIT: return variant("wait", opilio_json_of_number((double)of->val.wait));
    case EXPORTS_OPILIO_PLUGIN_PAGE_BEHAVIOR_ACTION_EVALUATE: return variant("evaluate", text(of->val.evaluate));
    case EXPORTS_OPILIO_PLUGIN_PAGE_BEHAVIOR_ACTION_SCREENSHOT: return opilio_json_of_text(OPILIO_TEXT("screenshot"));
    default: return variant("other", text(of->val.other));
  }
}

static opilio_json actions(const exports_opilio_plugin_page_behavior_list_action_t *of) { LIST(of, action); }

static opilio_json selector(const plugin_string_t *of) { return text(*of); }

static opilio_json selectors(const plugin_list_string_t *of) { LIST(of, selector); }

opilio_json opilio_answer_plan(const exports_opilio_plugin_page_behavior_step_plan_t *of) {
  opilio_json made = opilio_json_empty(OPILIO_JSON_OBJECT);
  opilio_json_set(&made, "actions", actions(&of->actions));
  opilio_json_set(&made, "count", selectors(&of->count));
  opilio_json_set(&made, "memory", bytes(of->memory));
  opilio_json_set(&made, "finished", opilio_json_of_boolean(of->finished));
  return made;
}
