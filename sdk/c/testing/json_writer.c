// Builds, writes and compares JSON. src/json.c reads it.

#include <string.h>

#include "testing.h"

opilio_json opilio_json_of_text(opilio_text text) { return (opilio_json){.type = OPILIO_JSON_TEXT, .text = text}; }

opilio_json opilio_json_of_number(double number) { return (opilio_json){.type = OPILIO_JSON_NUMBER, .number = number}; }

opilio_json opilio_json_of_boolean(bool boolean) { return (opilio_json){.type = OPILIO_JSON_BOOLEAN, .boolean = boolean}; }

opilio_json opilio_json_empty(opilio_json_type list_or_object) { return (opilio_json){.type = list_or_object}; }

opilio_json opilio_json_of_bytes(opilio_bytes bytes) {
  opilio_json list = opilio_json_empty(OPILIO_JSON_LIST);
  for (size_t n = 0; n < bytes.len; n++) opilio_json_add(&list, opilio_json_of_number(bytes.ptr[n]));
  return list;
}

void opilio_json_add(opilio_json *list, opilio_json item) {
  // The capacity doubles, so a list is full if its length is a power of two.
  if ((list->length & (list->length - 1)) == 0) {
    opilio_json *items = opilio_memory((list->length ? 2 * list->length : 1) * sizeof *items);
    opilio_text *names = opilio_memory((list->length ? 2 * list->length : 1) * sizeof *names);
    for (size_t n = 0; n < list->length; n++) {
      items[n] = list->items[n];
      if (list->names) names[n] = list->names[n];
    }
    list->items = items;
    list->names = names;
  }
  list->items[list->length++] = item;
}

void opilio_json_set(opilio_json *object, const char *name, opilio_json value) {
  opilio_json_add(object, value);
  object->names[object->length - 1] = opilio_text_of(name);
}

static opilio_text join(opilio_text one, opilio_text other) {
  return opilio_format("%.*s%.*s", (int)one.len, one.ptr, (int)other.len, other.ptr);
}

static opilio_text quote(opilio_text text) {
  char *made = opilio_memory(6 * text.len + 3);
  char *to = made;
  *to++ = '"';
  for (size_t n = 0; n < text.len; n++) {
    unsigned char c = (unsigned char)text.ptr[n];
    if (c < 0x20) {
      opilio_text escaped = opilio_format("\\u%04x", c);
      memcpy(to, escaped.ptr, escaped.len);
      to += escaped.len;
      continue;
    }
    if (c == '"' || c == '\\') *to++ = '\\';
    *to++ = (char)c;
  }
  *to++ = '"';
  return (opilio_text){made, (size_t)(to - made)};
}

static opilio_text number(double of) {
  bool whole = of > -1e15 && of < 1e15 && (double)(int64_t)of == of;
  return whole ? opilio_format("%.0f", of) : opilio_format("%.17g", of);
}

opilio_text opilio_json_to_text(const opilio_json *json) {
  switch (json ? json->type : OPILIO_JSON_NULL) {
    case OPILIO_JSON_NULL: return OPILIO_TEXT("null");
    case OPILIO_JSON_BOOLEAN: return json->boolean ? OPILIO_TEXT("true") : OPILIO_TEXT("false");
    case OPILIO_JSON_NUMBER: return number(json->number);
    case OPILIO_JSON_TEXT: return quote(json->text);
    case OPILIO_JSON_LIST:
    case OPILIO_JSON_OBJECT: break;
  }
  bool object = json->type == OPILIO_JSON_OBJECT;
  opilio_text made = object ? OPILIO_TEXT("{") : OPILIO_TEXT("[");
  for (size_t n = 0; n < json->length; n++) {
    if (n) made = join(made, OPILIO_TEXT(","));
    if (object) made = join(join(made, quote(json->names[n])), OPILIO_TEXT(":"));
    made = join(made, opilio_json_to_text(&json->items[n]));
  }
  return join(made, object ? OPILIO_TEXT("}") : OPILIO_TEXT("]"));
}

static const opilio_json *member(const opilio_json *object, opilio_text name) {
  return opilio_json_member(object, opilio_format("%.*s", (int)name.len, name.ptr).ptr);
}

bool opilio_json_equal(const opilio_json *one, const opilio_json *other) {
  if (!one || !other || one->type != other->type || one->length != other->length) return false;
  switch (one->type) {
    case OPILIO_JSON_NULL: return true;
    case OPILIO_JSON_BOOLEAN: return one->boolean == other->boolean;
    case OPILIO_JSON_NUMBER: return one->number == other->number;
    case OPILIO_JSON_TEXT: return one->text.len == other->text.len && memcmp(one->text.ptr, other->text.ptr, one->text.len) == 0;
    case OPILIO_JSON_LIST:
    case OPILIO_JSON_OBJECT: break;
  }
  for (size_t n = 0; n < one->length; n++) {
    const opilio_json *same = one->type == OPILIO_JSON_LIST ? &other->items[n] : member(other, one->names[n]);
    if (!opilio_json_equal(&one->items[n], same)) return false;
  }
  return true;
}

opilio_bytes opilio_json_bytes(const opilio_json *list) {
  size_t length = opilio_json_length(list);
  uint8_t *bytes = opilio_memory(length);
  for (size_t n = 0; n < length; n++) bytes[n] = (uint8_t)opilio_json_number(opilio_json_item(list, n), 0);
  return (opilio_bytes){bytes, length};
}
