// Addresses in any bytes: programs, fonts, office files that nobody parses. A last resort, for what no other extractor
// understands. Text in which a nought follows each character, as Windows writes it, is looked through as well.

#include <string.h>

#include <opilio.h>

enum { SIZE_MAX_DEFAULT = 1 << 20, ADDRESS_MAX = 2048 };

static const char settings_schema[] =
    "{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {"
    "\"size-max\": {\"type\": \"integer\", \"minimum\": 1, \"maximum\": 16777216, \"default\": 1048576,"
    " \"description\": \"How much of a document is looked through, in bytes.\", \"x-opilio-overridable\": true},"
    "\"schemes\": {\"type\": \"array\", \"items\": {\"type\": \"string\"}, \"default\": [\"http\", \"https\", \"ftp\"],"
    " \"description\": \"Schemes that an address may begin with.\"}}}";

typedef struct {
  uint32_t size_max;
  opilio_text *starts;
  size_t length;
} universal_scan;

static bool is_letter(uint8_t c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

static bool is_digit(uint8_t c) { return c >= '0' && c <= '9'; }

static void *configure(const opilio_json *settings, opilio_faults *faults) {
  universal_scan *self = opilio_memory(sizeof *self);
  self->size_max = (uint32_t)opilio_json_number(opilio_json_member(settings, "size-max"), SIZE_MAX_DEFAULT);
  const opilio_json *schemes = opilio_json_member(settings, "schemes");
  self->length = opilio_json_length(schemes);
  self->starts = opilio_memory(self->length * sizeof *self->starts);
  for (size_t n = 0; n < self->length; n++) {
    opilio_text scheme = opilio_json_text(opilio_json_item(schemes, n), OPILIO_TEXT(""));
    for (size_t at = 0; at < scheme.len || !scheme.len; at++) {
      if (scheme.len && scheme.ptr[at] >= 'a' && scheme.ptr[at] <= 'z') continue;
      opilio_fault(faults, opilio_format("/schemes/%zu", n), OPILIO_TEXT("a scheme has lower-case letters, such as http"));
      break;
    }
    self->starts[n] = opilio_format("%.*s://", (int)scheme.len, scheme.ptr);
  }
  return self;
}

// Every `width`th byte of the document, where those between are nought: characters of one byte, or of two.
typedef struct {
  const uint8_t *at;
  const uint8_t *end;
  size_t width;
} characters;

// The character `n` places on; nought at the end and for what is no ASCII.
static uint8_t character(characters in, size_t n) {
  if (n * in.width + in.width > (size_t)(in.end - in.at)) return 0;
  const uint8_t *at = in.at + n * in.width;
  if (in.width == 2 && at[1]) return 0;
  return at[0];
}

// How many characters of an address's beginning stand here.
static size_t start(const universal_scan *self, characters in) {
  for (size_t n = 0; n < self->length; n++) {
    opilio_text wanted = self->starts[n];
    size_t same = 0;
    while (same < wanted.len && (character(in, same) | (is_letter(character(in, same)) ? 0x20 : 0)) == wanted.ptr[same]) same++;
    if (same == wanted.len) return same;
  }
  return 0;
}

static bool is_address_character(uint8_t c) { return c > ' ' && c < 0x7F && !memchr("\"<>\\^`{|}", c, 9); }

// A host has a name with a dot in it, or is in brackets; what else follows a scheme is a pattern, or the word itself.
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
  static const uint8_t mark[] = {':', 0, '/', 0};
  characters in = {content.ptr, content.ptr + content.len, width};
  // Two-byte text is rare, and its mark is quickly looked for.
  if (width == 2) {
    opilio_text whole = {(const char *)content.ptr, content.len};
    if (!opilio_contains(whole, (opilio_text){(const char *)mark, sizeof mark})) return;
  }
  for (; in.at < in.end; in.at++) {
    size_t begin = start(self, in);
    if (!begin) continue;
    char address[ADDRESS_MAX];
    size_t length = 0;
    while (length < ADDRESS_MAX && is_address_character(character(in, length))) {
      address[length] = (char)character(in, length);
      length++;
    }
    in.at += length * width - 1;
    // Longer is no address; what ends a sentence is not of it.
    if (length == ADDRESS_MAX) continue;
    while (length > begin && memchr(".,;:!?'\")]*", address[length - 1], 11)) length--;
    if (has_host(address + begin, length - begin)) {
      opilio_link(out, (opilio_text){address, length}, OPILIO_SPECULATIVE, context);
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
    .summary = "Finds addresses in any bytes.",
    .settings_schema = settings_schema,
    .configure = configure,
    .extract = extract,
};

OPILIO_EXPORT(&exported);
