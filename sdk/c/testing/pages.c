// Pages in a browser for native tests, with the values of a case.

#include "testing.h"

typedef opilio_plugin_documents_borrow_page_t page;

static plugin_string_t text_or(const opilio_json *json, opilio_text otherwise) {
  return opilio_lent(opilio_json_text(json, otherwise));
}

static double number_or(page self, const char *name, double otherwise) {
  return opilio_json_number(opilio_test_fact(self.__handle, name), otherwise);
}

void opilio_plugin_documents_method_page_uri(page self, plugin_string_t *ret) {
  *ret = text_or(opilio_test_fact(self.__handle, "uri"), OPILIO_TEXT("http://example.com/"));
}

void opilio_plugin_documents_method_page_title(page self, plugin_string_t *ret) {
  *ret = text_or(opilio_test_fact(self.__handle, "title"), OPILIO_TEXT(""));
}

// A number with its default.
#define NUMBER(method, type, name, otherwise)                                                                         \
  type opilio_plugin_documents_method_page_##method(page self) { return (type)number_or(self, name, otherwise); }

NUMBER(elements, uint64_t, "elements", 0)
NUMBER(text_length, uint64_t, "text-length", 0)
NUMBER(scroll_height, uint64_t, "scroll-height", 0)
NUMBER(scroll_top, uint64_t, "scroll-top", 0)
NUMBER(window_height, uint64_t, "window-height", 800)
NUMBER(requests_in_flight, uint32_t, "requests-in-flight", 0)
NUMBER(time_used, uint64_t, "time-used", 0)
NUMBER(time_left, uint64_t, "time-left", 60000)
NUMBER(step, uint32_t, "step", 0)
NUMBER(steps_left, uint32_t, "steps-left", 50)

bool opilio_plugin_documents_method_page_count(page self, plugin_string_t *selector, uint64_t *ret) {
  opilio_text name = opilio_borrowed(*selector);
  const char *terminated = opilio_format("%.*s", (int)name.len, name.ptr).ptr;
  const opilio_json *found = opilio_json_member(opilio_test_fact(self.__handle, "counts"), terminated);
  *ret = (uint64_t)opilio_json_number(found, 0);
  return found != NULL;
}

// A result is a name, or an object with a name and a value.
static opilio_plugin_documents_action_result_t result(const opilio_json *from) {
  static const char *const names[] = {"done", "clicked", "value", "no-element", "not-idle", "invalid", "exception", "refused"};
  bool has_value = from->type == OPILIO_JSON_OBJECT && from->length == 1;
  opilio_text name = has_value ? from->names[0] : opilio_json_text(from, OPILIO_TEXT(""));
  const opilio_json *value = has_value ? &from->items[0] : NULL;
  opilio_plugin_documents_action_result_t made = {.tag = OPILIO_PLUGIN_DOCUMENTS_ACTION_RESULT_OTHER};
  for (uint8_t n = 0; n < sizeof names / sizeof *names; n++) {
    if (opilio_is(name, names[n])) made.tag = n;
  }
  switch (made.tag) {
    case OPILIO_PLUGIN_DOCUMENTS_ACTION_RESULT_CLICKED: made.val.clicked = (uint32_t)opilio_json_number(value, 0); break;
    case OPILIO_PLUGIN_DOCUMENTS_ACTION_RESULT_VALUE: made.val.value = text_or(value, OPILIO_TEXT("")); break;
    case OPILIO_PLUGIN_DOCUMENTS_ACTION_RESULT_INVALID: made.val.invalid = text_or(value, OPILIO_TEXT("")); break;
    case OPILIO_PLUGIN_DOCUMENTS_ACTION_RESULT_EXCEPTION: made.val.exception = text_or(value, OPILIO_TEXT("")); break;
    case OPILIO_PLUGIN_DOCUMENTS_ACTION_RESULT_REFUSED: made.val.refused = text_or(value, OPILIO_TEXT("")); break;
    case OPILIO_PLUGIN_DOCUMENTS_ACTION_RESULT_OTHER: made.val.other = text_or(value, OPILIO_TEXT("")); break;
    default: break;
  }
  return made;
}

void opilio_plugin_documents_method_page_results(page self, opilio_plugin_documents_list_action_result_t *ret) {
  const opilio_json *list = opilio_test_fact(self.__handle, "results");
  ret->len = opilio_json_length(list);
  ret->ptr = opilio_memory(ret->len * sizeof *ret->ptr);
  for (size_t n = 0; n < ret->len; n++) ret->ptr[n] = result(opilio_json_item(list, n));
}

// Native tests have no borrowed resources.
void opilio_plugin_documents_page_drop_borrow(page handle) { (void)handle; }
