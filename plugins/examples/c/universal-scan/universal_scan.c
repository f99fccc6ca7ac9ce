// Finds URIs in any bytes: programs, fonts, office files. It is a last resort for documents that no other extractor understands.
// It also reads text in UTF-16LE, as Windows writes it: a zero byte follows each ASCII character.

#include <string.h>

#include <opilio.h>

enum { SIZE_MAX_DEFAULT = 1 << 20, URI_LENGTH_MAX = 2048 };

static const char settings_schema[] =
    "{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {"
    "\"size-max\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 16777216, \"default\": 1048576,"
    " \"description\": \"Number of bytes to read, from the beginning of a document.\", \"x-opilio-overridable\": true},"
    "\"schemes\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}, \"default\": [\"http\", \"https\", \"ftp\"],"
    " \"description\": \"Schemes of the URIs to find.\"}}}";

typedef struct {
  uint32_t size_max;
  opilio_text *prefixes;
  size_t length;
} universal_scan;

static bool is_letter(uint8_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }

static void *configure(const opilio_json *settings, opilio_faults *faults) {
  universal_scan *self = opilio_memory(sizeof *self);
  self->size_max = (uint32_t)opilio_json_number(opilio_json_member(settings, "size-max"), SIZE_MAX_DEFAULT);
  const opilio_json *schemes = opilio_json_member(settings, "schemes");
  self->length = opilio_json_length(schemes);
  self->prefixes = opilio_memory(self->length * sizeof *self->prefixes);
  for (size_t n = 0; n < self->length; n++) {
    opilio_text scheme = opilio_json_text(opilio_json_item(schemes, n), OPILIO_TEXT(""));
    for (size_t at = 0; at < scheme.len || !scheme.len; at++) {
      if (scheme.len && scheme.ptr[at] >= 'a' && scheme.ptr[at] <= 'z') continue;
      opilio_fault(faults, opilio_format("/schemes/%zu", n), OPILIO_TEXT("not a scheme; use lower-case letters, such as http"));
      break;
    }
    self->prefixes[n] = opilio_format("%.*s://", (int)scheme.len, scheme.ptr);
  }
  return self;
}

// The rest of the content, as characters of one byte (`width` 1) or of UTF-16LE (`width` 2).
typedef struct {
  const uint8_t *at;
  const uint8_t *end;
  size_t width;
} characters;

// Returns the character at index `n`; 0 at the end, and for a two-byte character above U+00FF.
static uint8_t character(characters in, size_t n) {
  if (n * in.width + in.width > (size_t)(in.end - in.at)) return 0;
  const uint8_t *at = in.at + n * in.width;
  if (in.width == 2 && at[1]) return 0;
  return at[0];
}

// Returns the length of the scheme and `://` at the current position; 0 if there is no scheme.
static size_t scheme_length(const universal_scan *self, characters in) {
  for (size_t n = 0; n < self->length; n++) {
    opilio_text wanted = self->prefixes[n];
    size_t same = 0;
    while (same < wanted.len && (character(in, same) | (is_letter(character(in, same)) ? 0x20 : 0)) == wanted.ptr[same]) same++;
    if (same == wanted.len) return same;
  }
  return 0;
}

static bool is_uri_character(uint8_t c) { return c > ' ' && c < 0x7F && !memchr("\"<>\\^`{|}", c, 9); }

// Returns true for a host with a dot in its name, or in brackets. Other text after a scheme is not a URI but, for example, a
// pattern.
static bool has_host(const char *host, size_t length) {
  bool dot = false;
  if (length && host[0] == '[') return memchr(host, ']', length) != NULL;
  for (size_t n = 0; n < length && host[n] != '/' && host[n] != '?' && host[n] != '#' && host[n] != ':'; n++) {
    uint8_t c = (uint8_t)host[n];
    if (c == '.' && n > 0 && n + 1 < length && (is_letter((uint8_t)host[n + 1]) || is_digit((uint8_t)host[n + 1]))) dot = true;
    else if (!is_letter(c) && !is_digit(c) && c != '-' && c != '_' && c != '.' && c != '@') return false;
  }
  return dot;
}

static void scan(const universal_scan *self, opilio_bytes content, size_t width, opilio_text context, opilio_extraction *out) {
  static const uint8_t separator[] = {':', 0, '/', 0};
  characters in = {content.ptr, content.ptr + content.len, width};
  // Two-byte text is rare, and the search for its `:/` is fast.
  if (width == 2) {
    opilio_text whole = {(const char *)content.ptr, content.len};
    if (!opilio_contains(whole, (opilio_text){(const char *)separator, sizeof separator})) return;
  }
  for (; in.at < in.end; in.at++) {
    size_t begin = scheme_length(self, in);
    if (!begin) continue;
    char uri[URI_LENGTH_MAX];
    size_t length = 0;
    while (length < URI_LENGTH_MAX && is_uri_character(character(in, length))) {
      uri[length] = (char)character(in, length);
      length++;
    }
    in.at += length * width - 1;
    // Longer text is not a URI. Punctuation at the end belongs to the sentence.
    if (length == URI_LENGTH_MAX) continue;
    while (length > begin && memchr(".,;:!?'\")]*", uri[length - 1], 11)) length--;
    if (has_host(uri + begin, length - begin)) {
      opilio_link(out, (opilio_text){uri, length}, OPILIO_SPECULATIVE, context);
    }
  }
}

static void extract(const void *plugin, opilio_document document, opilio_extraction *out) {
  const universal_scan *self = plugin;
  opilio_bytes content = opilio_document_read(document, 0, self->size_max);
  scan(self, content, 1, OPILIO_TEXT("universal"), out);
  scan(self, content, 2, OPILIO_TEXT("universal/utf-16"), out);
  if (opilio_document_length(document) > content.len) opilio_count("not-looked-through-whole", 1);
}

static const opilio_plugin exported = {
    .name = "universal-scan",
    .version = "0.1.0",
    .summary = "Finds absolute URIs in any bytes.",
    .settings_schema = settings_schema,
    .configure = configure,
    .extract = extract,
};

OPILIO_EXPORT(&exported);
