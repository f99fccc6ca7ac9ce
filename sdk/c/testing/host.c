// A host for native tests: documents, visits, queues and candidates with the values of a case, its tables, and a log on
// standard error. pages.c has pages.

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testing.h"

// A resource behind a handle: the values of the case, and the values that the plugin set.
typedef struct {
  const opilio_json *facts;
  opilio_json notes;
  opilio_json kept_with_uri;
  opilio_json kept_with_site;
} resource;

static resource *resources;
static size_t resources_length;
static const opilio_json *tables;

int32_t opilio_test_handle(const opilio_json *facts) {
  resource *grown = opilio_memory((resources_length + 1) * sizeof *grown);
  for (size_t n = 0; n < resources_length; n++) grown[n] = resources[n];
  resources = grown;
  resource *made = &resources[resources_length++];
  made->facts = facts;
  made->notes = opilio_json_empty(OPILIO_JSON_OBJECT);
  const opilio_json *kept = opilio_json_member(facts, "kept");
  const opilio_json *keepers[] = {opilio_json_member(kept, "uri"), opilio_json_member(kept, "site")};
  made->kept_with_uri = keepers[0] ? *keepers[0] : opilio_json_empty(OPILIO_JSON_OBJECT);
  made->kept_with_site = keepers[1] ? *keepers[1] : opilio_json_empty(OPILIO_JSON_OBJECT);
  // Handles begin at 1, as the host's do.
  return (int32_t)resources_length;
}

void opilio_test_tables(const opilio_json *given) { tables = given; }

opilio_document opilio_test_open(opilio_test_document document) {
  opilio_json *facts = opilio_memory(sizeof *facts);
  *facts = opilio_json_empty(OPILIO_JSON_OBJECT);
  if (document.uri) opilio_json_set(facts, "uri", opilio_json_of_text(opilio_text_of(document.uri)));
  if (document.media_type) opilio_json_set(facts, "media-type", opilio_json_of_text(opilio_text_of(document.media_type)));
  opilio_json_set(facts, "status", opilio_json_of_number(document.status));
  opilio_json_set(facts, "text", opilio_json_of_text(document.content));
  return (opilio_document){opilio_test_handle(facts)};
}

// ---- facts

static resource *resource_of(int32_t handle) { return &resources[handle - 1]; }

static const opilio_json *fact(int32_t handle, const char *name) { return opilio_json_member(resource_of(handle)->facts, name); }

const opilio_json *opilio_test_fact(int32_t handle, const char *name) { return fact(handle, name); }

static bool is_there(const opilio_json *json) { return json && json->type != OPILIO_JSON_NULL; }

static plugin_string_t text_or(const opilio_json *json, const char *otherwise) {
  return opilio_lent(opilio_json_text(json, opilio_text_of(otherwise)));
}

static plugin_option_string_t optional_text(const opilio_json *json) {
  return (plugin_option_string_t){is_there(json), text_or(json, "")};
}

static uint64_t u64_of(const opilio_json *json) { return (uint64_t)opilio_json_number(json, 0); }

static plugin_option_u64_t optional_u64(const opilio_json *json) { return (plugin_option_u64_t){is_there(json), u64_of(json)}; }

static uint8_t state_of(const opilio_json *json) {
  static const char *const states[] = {"new", "changed", "unchanged", "unknown"};
  for (uint8_t n = 0; n < 4; n++) {
    if (opilio_is(opilio_json_text(json, OPILIO_TEXT("new")), states[n])) return n;
  }
  return OPILIO_PLUGIN_TYPES_CONTENT_STATE_UNKNOWN;
}

static bool equal_ignoring_case(opilio_text one, opilio_text other) {
  if (one.len != other.len) return false;
  for (size_t n = 0; n < one.len; n++) {
    if (tolower((unsigned char)one.ptr[n]) != tolower((unsigned char)other.ptr[n])) return false;
  }
  return true;
}

static opilio_plugin_types_list_named_value_t all_named(const opilio_json *list) {
  size_t length = opilio_json_length(list);
  opilio_plugin_types_named_value_t *made = opilio_memory(length * sizeof *made);
  for (size_t n = 0; n < length; n++) {
    const opilio_json *one = opilio_json_item(list, n);
    made[n].name = text_or(opilio_json_member(one, "name"), "");
    made[n].value = text_or(opilio_json_member(one, "value"), "");
  }
  return (opilio_plugin_types_list_named_value_t){made, length};
}

// Finds the first value of a name in a list of names and values. The case of letters is ignored.
static bool first_named(const opilio_json *list, plugin_string_t name, plugin_string_t *ret) {
  opilio_plugin_types_list_named_value_t all = all_named(list);
  for (size_t n = 0; n < all.len; n++) {
    if (!equal_ignoring_case(opilio_borrowed(all.ptr[n].name), opilio_borrowed(name))) continue;
    *ret = all.ptr[n].value;
    return true;
  }
  return false;
}

static const char *terminated(plugin_string_t name) { return opilio_format("%.*s", (int)name.len, (const char *)name.ptr).ptr; }

// Replaces the member, or adds it.
static void set_member(opilio_json *object, plugin_string_t name, opilio_json value) {
  for (size_t n = 0; n < object->length; n++) {
    if (!opilio_is(object->names[n], terminated(name))) continue;
    object->items[n] = value;
    return;
  }
  opilio_json_set(object, terminated(name), value);
}

static bool get_kept(const opilio_json *in, plugin_string_t *name, opilio_plugin_types_kept_value_t *ret) {
  const opilio_json *found = opilio_json_member(in, terminated(*name));
  if (!is_there(found)) return false;
  ret->version = (uint32_t)u64_of(opilio_json_member(found, "version"));
  ret->value = text_or(opilio_json_member(found, "value"), "");
  return true;
}

// Keeps a value without a version: only the host knows the version that the description declares.
static void set_kept(opilio_json *in, plugin_string_t *name, plugin_string_t *value) {
  opilio_json made = opilio_json_empty(value->len ? OPILIO_JSON_OBJECT : OPILIO_JSON_NULL);
  if (value->len) opilio_json_set(&made, "value", opilio_json_of_text(opilio_borrowed(opilio_owned(opilio_borrowed(*value)))));
  set_member(in, opilio_owned(opilio_borrowed(*name)), made);
}

static bool get_note(int32_t handle, plugin_string_t *name, plugin_string_t *ret) {
  const opilio_json *left = opilio_json_member(&resource_of(handle)->notes, terminated(*name));
  if (!left) return first_named(fact(handle, "notes"), *name, ret);
  *ret = text_or(left, "");
  return true;
}

static opilio_plugin_types_candidate_t candidate(const opilio_json *facts) {
  return (opilio_plugin_types_candidate_t){
      .uri = text_or(opilio_json_member(facts, "uri"), ""),
      .surt = text_or(opilio_json_member(facts, "surt"), ""),
      .hop_path = text_or(opilio_json_member(facts, "hop-path"), ""),
      .via = optional_text(opilio_json_member(facts, "via")),
      .via_surt = optional_text(opilio_json_member(facts, "via-surt")),
      .context = text_or(opilio_json_member(facts, "context"), ""),
      .seed = opilio_json_boolean(opilio_json_member(facts, "seed"), false),
      .source = optional_text(opilio_json_member(facts, "source")),
      .address = optional_text(opilio_json_member(facts, "address")),
      .attributes = all_named(opilio_json_member(facts, "attributes")),
  };
}

exports_opilio_plugin_observer_finished_t opilio_test_event(const opilio_json *facts) {
  const opilio_json *annotations = opilio_json_member(facts, "annotations");
  plugin_list_string_t annotated = {opilio_memory(opilio_json_length(annotations) * sizeof *annotated.ptr), 0};
  for (; annotated.len < opilio_json_length(annotations); annotated.len++) {
    annotated.ptr[annotated.len] = text_or(opilio_json_item(annotations, annotated.len), "");
  }
  plugin_option_u64_t took = optional_u64(opilio_json_member(facts, "took"));
  opilio_plugin_types_list_named_value_t attributes = all_named(opilio_json_member(facts, "attributes"));
  return (exports_opilio_plugin_observer_finished_t){
      .at = u64_of(opilio_json_member(facts, "at")),
      .uri = text_or(opilio_json_member(facts, "uri"), ""),
      .status = (int32_t)opilio_json_number(opilio_json_member(facts, "status"), 0),
      .media_type = text_or(opilio_json_member(facts, "media-type"), ""),
      .size = optional_u64(opilio_json_member(facts, "size")),
      .took = {took.is_some, took.val},
      .state = state_of(opilio_json_member(facts, "state")),
      .hop_path = text_or(opilio_json_member(facts, "hop-path"), ""),
      .via = optional_text(opilio_json_member(facts, "via")),
      .source = optional_text(opilio_json_member(facts, "source")),
      .queue = text_or(opilio_json_member(facts, "queue"), ""),
      .digest = optional_text(opilio_json_member(facts, "digest")),
      .annotations = annotated,
      .attributes = {attributes.ptr, attributes.len},
  };
}

// ---- log, counters, tables

void opilio_plugin_log_write(opilio_plugin_log_level_t level, plugin_string_t *message) {
  static const char *const levels[] = {"debug", "info", "warn", "error"};
  fprintf(stderr, "%s: %.*s\n", levels[level], (int)message->len, (const char *)message->ptr);
}

void opilio_plugin_counters_count(plugin_string_t *name, uint64_t n) {
  (void)name;
  (void)n;
}

bool opilio_plugin_tables_kind_of(plugin_string_t *table, opilio_plugin_tables_kind_t *ret) {
  const opilio_json *found = opilio_json_member(tables, terminated(*table));
  if (!found) return false;
  bool surts = opilio_is(opilio_json_text(opilio_json_member(found, "kind"), OPILIO_TEXT("")), "surt-prefixes");
  ret->tag = surts ? OPILIO_PLUGIN_TABLES_KIND_SURT_PREFIXES : OPILIO_PLUGIN_TABLES_KIND_KEY_VALUES;
  return true;
}

// Finds the row with the longest prefix of the key, or the last row with the key itself.
bool opilio_plugin_tables_find(plugin_string_t *table, plugin_string_t *key, opilio_plugin_tables_row_t *ret) {
  opilio_plugin_tables_kind_t kind = {0};
  if (!opilio_plugin_tables_kind_of(table, &kind)) return false;
  bool surts = kind.tag == OPILIO_PLUGIN_TABLES_KIND_SURT_PREFIXES;
  const opilio_json *rows = opilio_json_member(opilio_json_member(tables, terminated(*table)), "rows");
  bool found = false;
  for (size_t n = 0; n < opilio_json_length(rows); n++) {
    const opilio_json *row = opilio_json_item(rows, n);
    plugin_string_t has = text_or(opilio_json_member(row, "key"), "");
    bool long_enough = surts ? has.len <= key->len && (!found || has.len >= ret->key.len) : has.len == key->len;
    if (!long_enough || memcmp(has.ptr, key->ptr, has.len)) continue;
    *ret = (opilio_plugin_tables_row_t){has, text_or(opilio_json_member(row, "value"), "")};
    found = true;
  }
  return found;
}

void opilio_plugin_tables_find_candidates(plugin_string_t *table, opilio_plugin_tables_borrow_candidates_t candidates, plugin_list_bool_t *ret) {
  opilio_plugin_tables_kind_t kind = {0};
  opilio_plugin_tables_kind_of(table, &kind);
  const opilio_json *all = resource_of(candidates.__handle)->facts;
  *ret = (plugin_list_bool_t){opilio_memory(opilio_json_length(all) * sizeof(bool)), opilio_json_length(all)};
  for (size_t n = 0; n < ret->len; n++) {
    opilio_plugin_types_candidate_t one = candidate(opilio_json_item(all, n));
    opilio_plugin_tables_row_t row;
    plugin_string_t key = kind.tag == OPILIO_PLUGIN_TABLES_KIND_SURT_PREFIXES ? one.surt : one.uri;
    ret->ptr[n] = opilio_plugin_tables_find(table, &key, &row);
  }
}

// ---- documents

void opilio_plugin_documents_method_document_uri(opilio_plugin_documents_borrow_document_t self, plugin_string_t *ret) {
  *ret = text_or(fact(self.__handle, "uri"), "http://example.com/");
}

void opilio_plugin_documents_method_document_base(opilio_plugin_documents_borrow_document_t self, plugin_string_t *ret) {
  if (is_there(fact(self.__handle, "base"))) *ret = text_or(fact(self.__handle, "base"), "");
  else opilio_plugin_documents_method_document_uri(self, ret);
}

int32_t opilio_plugin_documents_method_document_status(opilio_plugin_documents_borrow_document_t self) {
  return (int32_t)opilio_json_number(fact(self.__handle, "status"), 200);
}

void opilio_plugin_documents_method_document_headers(opilio_plugin_documents_borrow_document_t self, opilio_plugin_documents_list_header_t *ret) {
  opilio_plugin_types_list_named_value_t all = all_named(fact(self.__handle, "headers"));
  *ret = (opilio_plugin_documents_list_header_t){opilio_memory(all.len * sizeof *ret->ptr), all.len};
  for (size_t n = 0; n < all.len; n++) ret->ptr[n] = (opilio_plugin_types_header_t){all.ptr[n].name, all.ptr[n].value};
}

void opilio_plugin_documents_method_document_header(opilio_plugin_documents_borrow_document_t self, plugin_string_t *name, plugin_list_string_t *ret) {
  opilio_plugin_types_list_named_value_t all = all_named(fact(self.__handle, "headers"));
  *ret = (plugin_list_string_t){opilio_memory(all.len * sizeof *ret->ptr), 0};
  for (size_t n = 0; n < all.len; n++) {
    if (equal_ignoring_case(opilio_borrowed(all.ptr[n].name), opilio_borrowed(*name))) ret->ptr[ret->len++] = all.ptr[n].value;
  }
}

void opilio_plugin_documents_method_document_media_type(opilio_plugin_documents_borrow_document_t self, plugin_string_t *ret) {
  *ret = text_or(fact(self.__handle, "media-type"), "application/octet-stream");
}

static bool optional_fact(int32_t handle, const char *name, plugin_string_t *ret) {
  *ret = text_or(fact(handle, name), "");
  return is_there(fact(handle, name));
}

bool opilio_plugin_documents_method_document_charset(opilio_plugin_documents_borrow_document_t self, plugin_string_t *ret) {
  return optional_fact(self.__handle, "charset", ret);
}

bool opilio_plugin_documents_method_document_fragment(opilio_plugin_documents_borrow_document_t self, plugin_string_t *ret) {
  return optional_fact(self.__handle, "fragment", ret);
}

static opilio_bytes content(opilio_plugin_documents_borrow_document_t self) {
  const opilio_json *bytes = fact(self.__handle, "bytes");
  if (is_there(bytes)) return opilio_json_bytes(bytes);
  plugin_string_t text = text_or(fact(self.__handle, "text"), "");
  return (opilio_bytes){text.ptr, text.len};
}

uint64_t opilio_plugin_documents_method_document_length(opilio_plugin_documents_borrow_document_t self) { return content(self).len; }

void opilio_plugin_documents_method_document_read(opilio_plugin_documents_borrow_document_t self, uint64_t offset, uint32_t length, plugin_list_u8_t *ret) {
  opilio_bytes all = content(self);
  uint64_t from = offset < all.len ? offset : all.len;
  uint64_t left = all.len - from;
  *ret = (plugin_list_u8_t){(uint8_t *)all.ptr + from, (size_t)(left < length ? left : length)};
}

// The characters of windows-1252 from 0x80 to 0x9F. Pages in iso-8859-1 are decoded as windows-1252 (WHATWG Encoding Standard).
static const uint16_t windows_1252[32] = {
    0x20AC, 0x81,   0x201A, 0x192,  0x201E, 0x2026, 0x2020, 0x2021, 0x2C6, 0x2030, 0x160, 0x2039, 0x152, 0x8D, 0x17D, 0x8F,
    0x90,   0x2018, 0x2019, 0x201C, 0x201D, 0x2022, 0x2013, 0x2014, 0x2DC, 0x2122, 0x161, 0x203A, 0x153, 0x9D, 0x17E, 0x178,
};

bool opilio_test_is_single_byte(opilio_text charset) {
  return equal_ignoring_case(charset, OPILIO_TEXT("iso-8859-1")) || equal_ignoring_case(charset, OPILIO_TEXT("windows-1252"));
}

// Returns the length in bytes of the first character, or 0 if it is invalid UTF-8.
static size_t character(const uint8_t *at, size_t left) {
  size_t length = *at < 0x80 ? 1 : *at >= 0xC2 && *at < 0xE0 ? 2 : *at >= 0xE0 && *at < 0xF0 ? 3 : *at >= 0xF0 && *at < 0xF5 ? 4 : 0;
  if (length == 0 || length > left) return 0;
  for (size_t n = 1; n < length; n++) {
    if ((at[n] & 0xC0) != 0x80) return 0;
  }
  bool is_out_of_range = (*at == 0xE0 && at[1] < 0xA0) || (*at == 0xED && at[1] >= 0xA0) || (*at == 0xF0 && at[1] < 0x90) || (*at == 0xF4 && at[1] >= 0x90);
  return is_out_of_range ? 0 : length;
}

void opilio_plugin_documents_method_document_text(opilio_plugin_documents_borrow_document_t self, plugin_string_t *ret) {
  *ret = text_or(fact(self.__handle, "text"), "");
  if (ret->len) return;
  opilio_bytes from = content(self);
  opilio_text charset = opilio_json_text(fact(self.__handle, "charset"), OPILIO_TEXT(""));
  bool single = opilio_test_is_single_byte(charset);
  uint8_t *made = opilio_memory(3 * from.len);
  size_t length = 0;
  for (size_t n = 0; n < from.len;) {
    size_t whole = character(from.ptr + n, from.len - n);
    if (single && from.ptr[n] >= 0x80) {
      unsigned code = from.ptr[n] < 0xA0 ? windows_1252[from.ptr[n] - 0x80] : from.ptr[n];
      if (code >= 0x800) made[length++] = (uint8_t)(0xE0 | code >> 12);
      made[length++] = (uint8_t)(code >= 0x800 ? 0x80 | (code >> 6 & 0x3F) : 0xC0 | code >> 6);
      made[length++] = (uint8_t)(0x80 | (code & 0x3F));
      n++;
    } else if (whole) {
      memcpy(made + length, from.ptr + n, whole);
      length += whole;
      n += whole;
    } else {
      memcpy(made + length, "\xEF\xBF\xBD", 3);
      length += 3;
      n++;
    }
  }
  *ret = (plugin_string_t){made, length};
}

bool opilio_plugin_documents_method_document_note(opilio_plugin_documents_borrow_document_t self, plugin_string_t *name, plugin_string_t *ret) {
  return get_note(self.__handle, name, ret);
}

void opilio_plugin_documents_method_document_set_note(opilio_plugin_documents_borrow_document_t self, plugin_string_t *name, plugin_string_t *value) {
  set_member(&resource_of(self.__handle)->notes, *name, opilio_json_of_text(opilio_borrowed(opilio_owned(opilio_borrowed(*value)))));
}

void opilio_plugin_documents_method_document_annotate(opilio_plugin_documents_borrow_document_t self, plugin_string_t *annotation) {
  (void)self;
  fprintf(stderr, "annotation: %.*s\n", (int)annotation->len, (const char *)annotation->ptr);
}

bool opilio_plugin_documents_method_document_attribute(opilio_plugin_documents_borrow_document_t self, plugin_string_t *name, opilio_plugin_documents_kept_value_t *ret) {
  return get_kept(&resource_of(self.__handle)->kept_with_uri, name, ret);
}

void opilio_plugin_documents_method_document_set_attribute(opilio_plugin_documents_borrow_document_t self, plugin_string_t *name, plugin_string_t *value) {
  set_kept(&resource_of(self.__handle)->kept_with_uri, name, value);
}

bool opilio_plugin_documents_method_document_site_value(opilio_plugin_documents_borrow_document_t self, plugin_string_t *name, opilio_plugin_documents_kept_value_t *ret) {
  return get_kept(&resource_of(self.__handle)->kept_with_site, name, ret);
}

void opilio_plugin_documents_method_document_set_site_value(opilio_plugin_documents_borrow_document_t self, plugin_string_t *name, plugin_string_t *value) {
  set_kept(&resource_of(self.__handle)->kept_with_site, name, value);
}

// ---- candidates

uint32_t opilio_plugin_documents_method_candidates_length(opilio_plugin_documents_borrow_candidates_t self) {
  return (uint32_t)opilio_json_length(resource_of(self.__handle)->facts);
}

// Returns the values of all candidates in one column, each with a line feed.
static void column(opilio_plugin_documents_borrow_candidates_t self, const char *name, plugin_string_t *ret) {
  const opilio_json *all = resource_of(self.__handle)->facts;
  opilio_text lines = OPILIO_TEXT("");
  for (size_t n = 0; n < opilio_json_length(all); n++) {
    opilio_text value = opilio_json_text(opilio_json_member(opilio_json_item(all, n), name), OPILIO_TEXT(""));
    lines = opilio_format("%.*s%.*s\n", (int)lines.len, lines.ptr, (int)value.len, value.ptr);
  }
  *ret = opilio_lent(lines);
}

#define COLUMN(columns, name)                                                                                              \
  void opilio_plugin_documents_method_candidates_##columns(opilio_plugin_documents_borrow_candidates_t self, plugin_string_t *ret) { \
    column(self, name, ret);                                                                                               \
  }

COLUMN(uris, "uri")
COLUMN(surts, "surt")
COLUMN(hop_paths, "hop-path")
COLUMN(contexts, "context")
COLUMN(vias, "via")
COLUMN(via_surts, "via-surt")
COLUMN(sources, "source")
COLUMN(addresses, "address")

void opilio_plugin_documents_method_candidates_seeds(opilio_plugin_documents_borrow_candidates_t self, plugin_list_bool_t *ret) {
  const opilio_json *all = resource_of(self.__handle)->facts;
  *ret = (plugin_list_bool_t){opilio_memory(opilio_json_length(all) * sizeof(bool)), opilio_json_length(all)};
  for (size_t n = 0; n < ret->len; n++) ret->ptr[n] = candidate(opilio_json_item(all, n)).seed;
}

void opilio_plugin_documents_method_candidates_get(opilio_plugin_documents_borrow_candidates_t self, uint32_t index, opilio_plugin_documents_candidate_t *ret) {
  *ret = candidate(opilio_json_item(resource_of(self.__handle)->facts, index));
}

// ---- queues and visits

#define NUMBER(resource, method, type, name)                                                                    \
  type opilio_plugin_documents_method_##resource##_##method(opilio_plugin_documents_borrow_##resource##_t self) { \
    return (type)opilio_json_number(fact(self.__handle, name), 0);                                             \
  }

NUMBER(queue, queued, uint64_t, "queued")
NUMBER(queue, succeeded, uint64_t, "succeeded")
NUMBER(queue, failed, uint64_t, "failed")
NUMBER(queue, bytes, uint64_t, "bytes")
NUMBER(queue, base, uint8_t, "base")
NUMBER(queue, now, uint64_t, "now")
NUMBER(visit, now, uint64_t, "now")
NUMBER(visit, status, int32_t, "status")
NUMBER(visit, overdue, uint64_t, "overdue")
NUMBER(visit, visits, uint64_t, "visits")
NUMBER(visit, versions, uint64_t, "versions")
NUMBER(visit, outlinks, uint64_t, "outlinks")
NUMBER(visit, inlinks, uint64_t, "inlinks")

void opilio_plugin_documents_method_queue_name(opilio_plugin_documents_borrow_queue_t self, plugin_string_t *ret) {
  *ret = text_or(fact(self.__handle, "name"), "");
}

bool opilio_plugin_documents_method_queue_best(opilio_plugin_documents_borrow_queue_t self, uint8_t *ret) {
  *ret = (uint8_t)u64_of(fact(self.__handle, "best"));
  return is_there(fact(self.__handle, "best"));
}

void opilio_plugin_documents_method_visit_candidate(opilio_plugin_documents_borrow_visit_t self, opilio_plugin_documents_candidate_t *ret) {
  *ret = candidate(fact(self.__handle, "candidate"));
}

void opilio_plugin_documents_method_visit_media_type(opilio_plugin_documents_borrow_visit_t self, plugin_string_t *ret) {
  *ret = text_or(fact(self.__handle, "media-type"), "");
}

opilio_plugin_documents_content_state_t opilio_plugin_documents_method_visit_state(opilio_plugin_documents_borrow_visit_t self) {
  return state_of(fact(self.__handle, "state"));
}

bool opilio_plugin_documents_method_visit_size(opilio_plugin_documents_borrow_visit_t self, uint64_t *ret) {
  *ret = u64_of(fact(self.__handle, "size"));
  return is_there(fact(self.__handle, "size"));
}

bool opilio_plugin_documents_method_visit_last_wait(opilio_plugin_documents_borrow_visit_t self, opilio_plugin_documents_duration_t *ret) {
  *ret = u64_of(fact(self.__handle, "last-wait"));
  return is_there(fact(self.__handle, "last-wait"));
}

void opilio_plugin_documents_method_visit_history(opilio_plugin_documents_borrow_visit_t self, opilio_plugin_documents_list_past_visit_t *ret) {
  const opilio_json *list = fact(self.__handle, "history");
  *ret = (opilio_plugin_documents_list_past_visit_t){opilio_memory(opilio_json_length(list) * sizeof *ret->ptr), opilio_json_length(list)};
  for (size_t n = 0; n < ret->len; n++) {
    const opilio_json *one = opilio_json_item(list, n);
    ret->ptr[n].at = u64_of(opilio_json_member(one, "at"));
    ret->ptr[n].status = (int32_t)opilio_json_number(opilio_json_member(one, "status"), 0);
    ret->ptr[n].state = state_of(opilio_json_member(one, "state"));
    ret->ptr[n].size = optional_u64(opilio_json_member(one, "size"));
  }
}

bool opilio_plugin_documents_method_visit_validator(opilio_plugin_documents_borrow_visit_t self, plugin_string_t *name, plugin_string_t *ret) {
  return first_named(fact(self.__handle, "validators"), *name, ret);
}

void opilio_plugin_documents_method_visit_signals(opilio_plugin_documents_borrow_visit_t self, opilio_plugin_documents_list_signal_t *ret) {
  const opilio_json *list = fact(self.__handle, "signals");
  *ret = (opilio_plugin_documents_list_signal_t){opilio_memory(opilio_json_length(list) * sizeof *ret->ptr), opilio_json_length(list)};
  for (size_t n = 0; n < ret->len; n++) {
    const opilio_json *one = opilio_json_item(list, n);
    plugin_option_u64_t modified = optional_u64(opilio_json_member(one, "modified"));
    ret->ptr[n].at = u64_of(opilio_json_member(one, "at"));
    ret->ptr[n].source = text_or(opilio_json_member(one, "source"), "");
    ret->ptr[n].modified.is_some = modified.is_some;
    ret->ptr[n].modified.val = modified.val;
  }
}

void opilio_plugin_documents_method_visit_neighbourhood(opilio_plugin_documents_borrow_visit_t self, opilio_plugin_documents_list_neighbourhood_t *ret) {
  const opilio_json *list = fact(self.__handle, "neighbourhood");
  *ret = (opilio_plugin_documents_list_neighbourhood_t){opilio_memory(opilio_json_length(list) * sizeof *ret->ptr), opilio_json_length(list)};
  for (size_t n = 0; n < ret->len; n++) {
    const opilio_json *one = opilio_json_item(list, n);
    ret->ptr[n].shares = text_or(opilio_json_member(one, "shares"), "");
    ret->ptr[n].documents = u64_of(opilio_json_member(one, "documents"));
    ret->ptr[n].visits = u64_of(opilio_json_member(one, "visits"));
    ret->ptr[n].changes = u64_of(opilio_json_member(one, "changes"));
    ret->ptr[n].observed = u64_of(opilio_json_member(one, "observed"));
  }
}

bool opilio_plugin_documents_method_visit_measure(opilio_plugin_documents_borrow_visit_t self, plugin_string_t *name, double *ret) {
  const opilio_json *found = opilio_json_member(fact(self.__handle, "measures"), terminated(*name));
  *ret = opilio_json_number(found, 0);
  return is_there(found);
}

bool opilio_plugin_documents_method_visit_attribute(opilio_plugin_documents_borrow_visit_t self, plugin_string_t *name, opilio_plugin_documents_kept_value_t *ret) {
  return get_kept(&resource_of(self.__handle)->kept_with_uri, name, ret);
}

void opilio_plugin_documents_method_visit_set_attribute(opilio_plugin_documents_borrow_visit_t self, plugin_string_t *name, plugin_string_t *value) {
  set_kept(&resource_of(self.__handle)->kept_with_uri, name, value);
}

bool opilio_plugin_documents_method_visit_site_value(opilio_plugin_documents_borrow_visit_t self, plugin_string_t *name, opilio_plugin_documents_kept_value_t *ret) {
  return get_kept(&resource_of(self.__handle)->kept_with_site, name, ret);
}

void opilio_plugin_documents_method_visit_set_site_value(opilio_plugin_documents_borrow_visit_t self, plugin_string_t *name, plugin_string_t *value) {
  set_kept(&resource_of(self.__handle)->kept_with_site, name, value);
}

bool opilio_plugin_documents_method_visit_note(opilio_plugin_documents_borrow_visit_t self, plugin_string_t *name, plugin_string_t *ret) {
  return get_note(self.__handle, name, ret);
}

// Native tests have no borrowed resources, so dropping has no effect.

void opilio_plugin_documents_document_drop_borrow(opilio_plugin_documents_borrow_document_t handle) { (void)handle; }

void opilio_plugin_documents_candidates_drop_borrow(opilio_plugin_documents_borrow_candidates_t handle) { (void)handle; }

void opilio_plugin_documents_queue_drop_borrow(opilio_plugin_documents_borrow_queue_t handle) { (void)handle; }

void opilio_plugin_documents_visit_drop_borrow(opilio_plugin_documents_borrow_visit_t handle) { (void)handle; }
