// Texts, memory and log lines.

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "inner.h"

opilio_text opilio_text_of(const char *text) { return (opilio_text){text, strlen(text)}; }

bool opilio_is(opilio_text text, const char *other) {
  return text.len == strlen(other) && memcmp(text.ptr, other, text.len) == 0;
}

bool opilio_contains(opilio_text text, opilio_text part) {
  if (part.len == 0) return true;
  for (size_t at = 0; at + part.len <= text.len; at++) {
    const char *found = memchr(text.ptr + at, part.ptr[0], text.len - part.len - at + 1);
    if (!found) return false;
    at = (size_t)(found - text.ptr);
    if (memcmp(found, part.ptr, part.len) == 0) return true;
  }
  return false;
}

void *opilio_memory(size_t size) {
  // Empty lists need an address too.
  void *memory = calloc(1, size ? size : 1);
  if (!memory) {
    plugin_string_t message = opilio_lent(OPILIO_TEXT("out of memory"));
    opilio_plugin_log_write(OPILIO_ERROR, &message);
    abort();
  }
  return memory;
}

static opilio_text format(const char *format, va_list arguments) {
  va_list again;
  va_copy(again, arguments);
  int length = vsnprintf(NULL, 0, format, again);
  va_end(again);
  if (length < 0) return (opilio_text){"", 0};
  char *text = opilio_memory((size_t)length + 1);
  vsnprintf(text, (size_t)length + 1, format, arguments);
  return (opilio_text){text, (size_t)length};
}

opilio_text opilio_format(const char *pattern, ...) {
  va_list arguments;
  va_start(arguments, pattern);
  opilio_text text = format(pattern, arguments);
  va_end(arguments);
  return text;
}

void opilio_log(opilio_level level, const char *pattern, ...) {
  va_list arguments;
  va_start(arguments, pattern);
  plugin_string_t message = opilio_lent(format(pattern, arguments));
  va_end(arguments);
  opilio_plugin_log_write((uint8_t)level, &message);
}

void opilio_fail(const char *pattern, ...) {
  va_list arguments;
  va_start(arguments, pattern);
  plugin_string_t message = opilio_lent(format(pattern, arguments));
  va_end(arguments);
  opilio_plugin_log_write(OPILIO_ERROR, &message);
  abort();
}

void opilio_count(const char *name, uint64_t n) {
  plugin_string_t lent = opilio_lent(opilio_text_of(name));
  opilio_plugin_counters_count(&lent, n);
}

plugin_list_u8_t opilio_owned_bytes(opilio_bytes bytes) {
  plugin_list_u8_t owned = {opilio_memory(bytes.len), bytes.len};
  if (bytes.len) memcpy(owned.ptr, bytes.ptr, bytes.len);
  return owned;
}

plugin_string_t opilio_owned(opilio_text text) {
  plugin_list_u8_t owned = opilio_owned_bytes((opilio_bytes){(const uint8_t *)text.ptr, text.len});
  return (plugin_string_t){owned.ptr, owned.len};
}

plugin_string_t opilio_lent(opilio_text text) { return (plugin_string_t){(uint8_t *)text.ptr, text.len}; }

opilio_text opilio_borrowed(plugin_string_t text) { return (opilio_text){(const char *)text.ptr, text.len}; }

void opilio_grow(void **list, size_t length, size_t *room, size_t size) {
  if (length < *room) return;
  *room = *room ? 2 * *room : 16;
  void *grown = opilio_memory(*room * size);
  if (length) memcpy(grown, *list, length * size);
  free(*list);
  *list = grown;
}
