// Finds URIs in HTML without parsing it. The extractor exists in every language, for comparison.

#include <string.h>

#include <opilio.h>

static const char settings_schema[] =
    "{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {"
    "\"attributes\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}, \"default\": [\"href\", \"src\"],"
    " \"description\": \"Attributes whose values are URIs.\", \"x-opilio-overridable\": true}}}";

typedef struct {
  opilio_text name;
  opilio_text context;
  opilio_hop hop;
} attribute;

typedef struct {
  attribute *attributes;
  size_t length;
} link_scan;

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r'; }

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 'a' - 'A') : c; }

static bool is_name(opilio_text name) {
  for (size_t n = 0; n < name.len; n++) {
    char c = name.ptr[n];
    if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-')) return false;
  }
  return name.len > 0;
}

static void *configure(const opilio_json *settings, opilio_faults *faults) {
  link_scan *self = opilio_memory(sizeof *self);
  const opilio_json *names = opilio_json_member(settings, "attributes");
  self->length = opilio_json_length(names);
  self->attributes = opilio_memory(self->length * sizeof *self->attributes);
  for (size_t n = 0; n < self->length; n++) {
    opilio_text name = opilio_json_text(opilio_json_item(names, n), OPILIO_TEXT(""));
    if (!is_name(name)) {
      opilio_fault(faults, opilio_format("/attributes/%zu", n), OPILIO_TEXT("not a name of an attribute"));
    }
    self->attributes[n].name = name;
    self->attributes[n].context = opilio_format("@%.*s", (int)name.len, name.ptr);
    self->attributes[n].hop = opilio_is(name, "href") ? OPILIO_LINK : OPILIO_EMBED;
  }
  return self;
}

// Returns the attribute whose name and equals sign are at `at`.
static const attribute *attribute_at(const link_scan *self, opilio_text text, size_t at) {
  for (size_t n = 0; n < self->length; n++) {
    opilio_text name = self->attributes[n].name;
    if (text.len - at <= name.len || text.ptr[at + name.len] != '=') continue;
    size_t same = 0;
    while (same < name.len && lower(text.ptr[at + same]) == name.ptr[same]) same++;
    if (same == name.len) return &self->attributes[n];
  }
  return NULL;
}

// Removes white space around a value, and decodes `&amp;`.
static opilio_text clean(const char *from, const char *end) {
  while (from < end && is_space(*from)) from++;
  while (from < end && is_space(end[-1])) end--;
  if (!memchr(from, '&', (size_t)(end - from))) return (opilio_text){from, (size_t)(end - from)};
  char *start = opilio_memory((size_t)(end - from));
  char *to = start;
  while (from < end) {
    bool ampersand = end - from >= 5 && memcmp(from, "&amp;", 5) == 0;
    *to++ = *from;
    from += ampersand ? 5 : 1;
  }
  return (opilio_text){start, (size_t)(to - start)};
}

// Sets *out to the attribute value at `at`. Returns the end of the value, after its closing quote. Returns `at` if an opening quote
// has no closing one.
static size_t value(opilio_text text, size_t at, opilio_text *out) {
  const char *start = text.ptr + at;
  const char *end = text.ptr + text.len;
  if (start < end && (*start == '"' || *start == '\'')) {
    const char *stop = memchr(start + 1, *start, (size_t)(end - start - 1));
    if (!stop) return at;
    *out = clean(start + 1, stop);
    return (size_t)(stop + 1 - text.ptr);
  }
  const char *stop = start;
  while (stop < end && !is_space(*stop) && *stop != '>') stop++;
  *out = clean(start, stop);
  return (size_t)(stop - text.ptr);
}

// Returns the length of the scheme at `at`; 0 if there is no scheme.
static size_t scheme(opilio_text text, size_t at) {
  size_t left = text.len - at;
  if (left >= 7 && memcmp(text.ptr + at, "http://", 7) == 0) return 7;
  return left >= 8 && memcmp(text.ptr + at, "https://", 8) == 0 ? 8 : 0;
}

static void extract(const void *plugin, opilio_document document, opilio_extraction *out) {
  const link_scan *self = plugin;
  opilio_text text = opilio_document_text(document);
  size_t at = 0;
  while (at < text.len) {
    const attribute *found = at > 0 && is_space(text.ptr[at - 1]) ? attribute_at(self, text, at) : NULL;
    if (found) {
      opilio_text uri = {"", 0};
      size_t begin = at + found->name.len + 1;
      size_t end = value(text, begin, &uri);
      if (uri.len) opilio_link(out, uri, found->hop, found->context);
      // Skips an opening quote without a closing one.
      bool unterminated = end == begin && begin < text.len && (text.ptr[begin] == '"' || text.ptr[begin] == '\'');
      at = unterminated ? begin + 1 : end;
      continue;
    }
    size_t begin = scheme(text, at);
    if (!begin) {
      at++;
      continue;
    }
    size_t end = at + begin;
    while (end < text.len && !is_space(text.ptr[end]) && !memchr("\"'<>", text.ptr[end], 4)) end++;
    size_t last = end;
    while (last > at + begin && memchr(".,;:!?)", text.ptr[last - 1], 7)) last--;
    if (last > at + begin) opilio_link(out, (opilio_text){text.ptr + at, last - at}, OPILIO_SPECULATIVE, OPILIO_TEXT("text"));
    at = end;
  }
}

static const opilio_plugin exported = {
    .name = "link-scan",
    .version = "0.1.0",
    .summary = "Finds URIs in HTML without parsing it.",
    .settings_schema = settings_schema,
    .media_types = (const char *const[]){"text/html", NULL},
    .configure = configure,
    .extract = extract,
};

OPILIO_EXPORT(&exported);
