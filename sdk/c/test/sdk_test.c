// Tests of the SDK, for any C compiler: settings, answers, and all calls of a plugin.

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "../testing/testing.h"

typedef struct {
  opilio_text word;
} finder;

static void *configure(const opilio_json *settings, opilio_faults *faults) {
  finder *self = opilio_memory(sizeof *self);
  self->word = opilio_json_text(opilio_json_member(settings, "word"), OPILIO_TEXT("x"));
  if (self->word.len == 0) opilio_fault(faults, OPILIO_TEXT("/word"), OPILIO_TEXT("is empty"));
  return self;
}

static void extract(const void *plugin, opilio_document document, opilio_extraction *out) {
  const finder *self = plugin;
  if (!opilio_contains(opilio_document_text(document), self->word)) return;
  for (int n = 0; n < 100; n++) opilio_link(out, opilio_format("%d", n), OPILIO_EMBED, self->word);
  opilio_base(out, opilio_document_uri(document));
  opilio_fragment_text_at(out, "text/css", 1, 2, OPILIO_TEXT("style"));
}

static const opilio_plugin plugin = {
    .name = "finder",
    .version = "1.0.0",
    .summary = "Finds.",
    .media_types = (const char *const[]){"text/html", NULL},
    .configure = configure,
    .extract = extract,
};

OPILIO_EXPORT(&plugin);

static bool is(plugin_string_t text, const char *wanted) {
  return text.len == strlen(wanted) && memcmp(text.ptr, wanted, text.len) == 0;
}

static plugin_string_t text(const char *of) { return (plugin_string_t){(uint8_t *)of, strlen(of)}; }

static size_t faults_of(const char *settings, exports_opilio_plugin_setup_list_settings_fault_t *faults) {
  plugin_string_t name = text("finder"), lent = text(settings);
  *faults = (exports_opilio_plugin_setup_list_settings_fault_t){0};
  return exports_opilio_plugin_setup_configure(&name, &lent, faults) ? 0 : faults->len;
}

static void json_is_parsed(void) {
  const opilio_json *json = opilio_json_read(
      OPILIO_TEXT("{\"a\": [1, -2.5e1, true, null], \"b\": {\"c\": \"\\u00e4\\ud83d\\ude00\\n\\\"\"}, \"d\": []}"));
  const opilio_json *list = opilio_json_member(json, "a");
  assert(opilio_json_length(list) == 4);
  assert(opilio_json_number(opilio_json_item(list, 1), 0) == -25);
  assert(opilio_json_boolean(opilio_json_item(list, 2), false));
  // Missing values and values of another type return the given default.
  assert(opilio_json_number(opilio_json_item(list, 3), 7) == 7);
  assert(opilio_json_number(opilio_json_item(list, 4), 7) == 7);
  assert(opilio_json_length(opilio_json_member(json, "d")) == 0);
  opilio_text inner = opilio_json_text(opilio_json_member(opilio_json_member(json, "b"), "c"), OPILIO_TEXT(""));
  assert(opilio_is(inner, "\xc3\xa4\xf0\x9f\x98\x80\n\""));
}

static void invalid_json_is_rejected(void) {
  static const char *const broken[] = {"", "{", "{\"a\"}", "[1,]", "\"a", "\"\\x\"", "\"\\u12\"", "nul", "1 2", "-"};
  for (size_t n = 0; n < sizeof broken / sizeof *broken; n++) assert(!opilio_json_read(opilio_text_of(broken[n])));
  char deep[200];
  memset(deep, '[', sizeof deep);
  assert(!opilio_json_read((opilio_text){deep, sizeof deep}));
}

static void plugin_can_be_described_configured_and_called(void) {
  exports_opilio_plugin_setup_list_description_t described;
  exports_opilio_plugin_setup_describe(&described);
  assert(described.len == 1 && is(described.ptr[0].name, "finder"));
  assert(described.ptr[0].kinds.len == 1 && described.ptr[0].kinds.ptr[0].tag == EXPORTS_OPILIO_PLUGIN_SETUP_KIND_EXTRACTOR);
  assert(described.ptr[0].handles.media_types.len == 1 && described.ptr[0].handles.uris.len == 0);

  exports_opilio_plugin_setup_list_settings_fault_t faults;
  assert(faults_of("{\"word\": \"\"}", &faults) == 1 && is(faults.ptr[0].pointer, "/word"));
  assert(faults_of("{", &faults) == 1);
  assert(faults_of("{\"word\": \"needle\"}", &faults) == 0);

  opilio_document with = opilio_test_open((opilio_test_document){"http://example.org/", "text/html", 200, OPILIO_TEXT("a needle")});
  opilio_document without = opilio_test_open((opilio_test_document){"http://example.org/", "text/html", 200, OPILIO_TEXT("hay")});
  opilio_plugin_documents_own_document_t both[] = {{with.__handle}, {without.__handle}};
  exports_opilio_plugin_extractor_list_own_document_t documents = {both, 2};
  exports_opilio_plugin_extractor_list_extraction_t answer;
  exports_opilio_plugin_extractor_extract(&documents, &answer);
  assert(answer.len == 2 && answer.ptr[0].links.len == 100 && answer.ptr[1].links.len == 0);
  assert(is(answer.ptr[0].links.ptr[42].uri, "42") && is(answer.ptr[0].links.ptr[42].context, "needle"));
  assert(answer.ptr[0].base.is_some && !answer.ptr[1].base.is_some);
  assert(answer.ptr[0].fragments.len == 1 && answer.ptr[0].fragments.ptr[0].content.val.text_at.length == 2);
}

static void failed_cases_are_counted(void) {
  opilio_test_result passing = opilio_test_cases("test/cases");
  assert(passing.cases == 4 && passing.failed == 0);
  // The errors are on standard error. Each case fails for a different reason.
  opilio_test_result failing = opilio_test_cases("test/failing-cases");
  assert(failing.cases == 8 && failing.failed == 8);
}

static void notes_and_kept_values_can_be_read(void) {
  opilio_document document = opilio_test_open((opilio_test_document){"http://example.org/", "text/html", 200, OPILIO_TEXT("hay")});
  opilio_text value;
  uint32_t version;
  assert(!opilio_document_note(document, "seen", &value));
  opilio_document_set_note(document, "seen", OPILIO_TEXT("once"));
  opilio_document_set_note(document, "seen", OPILIO_TEXT("twice"));
  assert(opilio_document_note(document, "seen", &value) && opilio_is(value, "twice"));
  opilio_document_set_site_value(document, "rate", OPILIO_TEXT("7"));
  assert(opilio_document_site_value(document, "rate", &version, &value) && opilio_is(value, "7"));
  opilio_document_set_site_value(document, "rate", OPILIO_TEXT(""));
  assert(!opilio_document_site_value(document, "rate", &version, &value));
}

static void text_is_decoded_by_charset(void) {
  plugin_string_t text;
  opilio_plugin_documents_method_document_text(
      (opilio_document){opilio_test_handle(opilio_json_read(OPILIO_TEXT("{\"charset\": \"windows-1252\", \"bytes\": [65, 228, 128, 131]}")))}, &text);
  assert(opilio_is(opilio_borrowed(text), "A\xc3\xa4\xe2\x82\xac\xc6\x92"));
  opilio_plugin_documents_method_document_text(
      (opilio_document){opilio_test_handle(opilio_json_read(OPILIO_TEXT("{\"bytes\": [65, 228, 195, 164, 237, 160, 128]}")))}, &text);
  assert(opilio_is(opilio_borrowed(text), "A\xef\xbf\xbd\xc3\xa4\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"));
}

int main(void) {
  json_is_parsed();
  invalid_json_is_rejected();
  plugin_can_be_described_configured_and_called();
  notes_and_kept_values_can_be_read();
  failed_cases_are_counted();
  text_is_decoded_by_charset();
  puts("6 tests passed");
  return 0;
}
