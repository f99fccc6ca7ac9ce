// Settings as JSON. The host has checked them against the plugin's schema. A value of another type counts as missing.

#include <stdlib.h>
#include <string.h>

#include "inner.h"

// The rest of the text. JSON that is nested deeper than DEPTH_MAX is rejected.
typedef struct {
  const char *at;
  const char *end;
  int depth;
} reader;

enum { DEPTH_MAX = 64 };

static const opilio_json nothing = {.type = OPILIO_JSON_NULL};

static void skip_space(reader *in) {
  while (in->at < in->end && strchr(" \t\r\n", *in->at)) in->at++;
}

static bool eat(reader *in, char wanted) {
  skip_space(in);
  if (in->at == in->end || *in->at != wanted) return false;
  in->at++;
  return true;
}

static bool word(reader *in, const char *wanted) {
  size_t length = strlen(wanted);
  if ((size_t)(in->end - in->at) < length || memcmp(in->at, wanted, length)) return false;
  in->at += length;
  return true;
}

static char *utf8(char *out, unsigned code) {
  if (code < 0x80) {
    *out++ = (char)code;
  } else if (code < 0x800) {
    *out++ = (char)(0xC0 | code >> 6);
    *out++ = (char)(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    *out++ = (char)(0xE0 | code >> 12);
    *out++ = (char)(0x80 | (code >> 6 & 0x3F));
    *out++ = (char)(0x80 | (code & 0x3F));
  } else {
    *out++ = (char)(0xF0 | code >> 18);
    *out++ = (char)(0x80 | (code >> 12 & 0x3F));
    *out++ = (char)(0x80 | (code >> 6 & 0x3F));
    *out++ = (char)(0x80 | (code & 0x3F));
  }
  return out;
}

static bool hex4(reader *in, unsigned *code) {
  *code = 0;
  for (int n = 0; n < 4; n++) {
    if (in->at == in->end) return false;
    char c = *in->at++;
    unsigned digit;
    if (c >= '0' && c <= '9') digit = (unsigned)(c - '0');
    else if (c >= 'a' && c <= 'f') digit = (unsigned)(c - 'a' + 10);
    else if (c >= 'A' && c <= 'F') digit = (unsigned)(c - 'A' + 10);
    else return false;
    *code = *code << 4 | digit;
  }
  return true;
}

// Reads a text after its opening quotation mark.
static bool text(reader *in, opilio_text *out) {
  // The decoded text is never longer than the escaped text.
  char *start = opilio_memory((size_t)(in->end - in->at) + 1);
  char *to = start;
  while (in->at < in->end && *in->at != '"') {
    if (*in->at != '\\') {
      *to++ = *in->at++;
      continue;
    }
    if (++in->at == in->end) return false;
    char c = *in->at++;
    static const char from[] = "\"\\/bfnrt";
    static const char into[] = "\"\\/\b\f\n\r\t";
    const char *known = c ? strchr(from, c) : NULL;
    if (known) {
      *to++ = into[known - from];
    } else if (c == 'u') {
      unsigned code, low;
      if (!hex4(in, &code)) return false;
      if (code >= 0xD800 && code < 0xDC00 && word(in, "\\u") && hex4(in, &low)) {
        code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
      }
      to = utf8(to, code);
    } else {
      return false;
    }
  }
  if (in->at == in->end) return false;
  in->at++;
  *out = (opilio_text){start, (size_t)(to - start)};
  return true;
}

static bool value(reader *in, opilio_json *out);

// Reads items up to the closing bracket. Items of an object have names.
static bool items(reader *in, opilio_json *out, char closing) {
  size_t room = 0;
  if (eat(in, closing)) return true;
  do {
    if (out->length == room) {
      room = room ? 2 * room : 8;
      opilio_json *grown = opilio_memory(room * sizeof *grown);
      opilio_text *names = opilio_memory(room * sizeof *names);
      if (out->length) {
        memcpy(grown, out->items, out->length * sizeof *grown);
        memcpy(names, out->names, out->length * sizeof *names);
      }
      out->items = grown;
      out->names = names;
    }
    if (out->type == OPILIO_JSON_OBJECT && !(eat(in, '"') && text(in, &out->names[out->length]) && eat(in, ':'))) return false;
    if (!value(in, &out->items[out->length++])) return false;
  } while (eat(in, ','));
  return eat(in, closing);
}

static bool value(reader *in, opilio_json *out) {
  *out = nothing;
  if (++in->depth > DEPTH_MAX) return false;
  bool read = true;
  if (eat(in, '"')) {
    out->type = OPILIO_JSON_TEXT;
    read = text(in, &out->text);
  } else if (eat(in, '[')) {
    out->type = OPILIO_JSON_LIST;
    read = items(in, out, ']');
  } else if (eat(in, '{')) {
    out->type = OPILIO_JSON_OBJECT;
    read = items(in, out, '}');
  } else if (word(in, "true")) {
    out->type = OPILIO_JSON_BOOLEAN;
    out->boolean = true;
  } else if (word(in, "false")) {
    out->type = OPILIO_JSON_BOOLEAN;
  } else if (!word(in, "null")) {
    // The text is not terminated, so strtod reads a terminated copy.
    char digits[64] = "";
    size_t length = 0;
    while (in->at < in->end && length < sizeof digits - 1 && *in->at && strchr("+-.0123456789eE", *in->at)) {
      digits[length++] = *in->at++;
    }
    char *end;
    out->type = OPILIO_JSON_NUMBER;
    out->number = strtod(digits, &end);
    read = length > 0 && *end == '\0';
  }
  in->depth--;
  return read;
}

const opilio_json *opilio_json_read(opilio_text from) {
  reader in = {from.ptr, from.ptr + from.len, 0};
  opilio_json *out = opilio_memory(sizeof *out);
  bool read = value(&in, out);
  skip_space(&in);
  return read && in.at == in.end ? out : NULL;
}

const opilio_json *opilio_json_member(const opilio_json *object, const char *name) {
  for (size_t n = 0; object && object->type == OPILIO_JSON_OBJECT && n < object->length; n++) {
    if (opilio_is(object->names[n], name)) return &object->items[n];
  }
  return NULL;
}

size_t opilio_json_length(const opilio_json *list) { return list && list->type == OPILIO_JSON_LIST ? list->length : 0; }

const opilio_json *opilio_json_item(const opilio_json *list, size_t at) {
  return at < opilio_json_length(list) ? &list->items[at] : NULL;
}

opilio_text opilio_json_text(const opilio_json *json, opilio_text otherwise) {
  return json && json->type == OPILIO_JSON_TEXT ? json->text : otherwise;
}

double opilio_json_number(const opilio_json *json, double otherwise) {
  return json && json->type == OPILIO_JSON_NUMBER ? json->number : otherwise;
}

bool opilio_json_boolean(const opilio_json *json, bool otherwise) {
  return json && json->type == OPILIO_JSON_BOOLEAN ? json->boolean : otherwise;
}
