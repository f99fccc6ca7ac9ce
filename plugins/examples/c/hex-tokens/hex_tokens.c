// Removes tokens that a server generates for each response, so that they do not count as a change: session and request numbers,
// UUIDs, nonces, checksums. All of them are long runs of hexadecimal digits.

#include <opilio.h>

static const char settings_schema[] =
    "{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {"
    "\"digits\": {\"type\": \"integer\", \"minimum\": 8, \"maximum\": 1024, \"default\": 32,"
    " \"description\": \"Minimum number of hexadecimal digits in a token. Hyphens between them do not count.\","
    " \"x-opilio-overridable\": true}}}";

// Bytes of the document that are read at a time.
enum { BLOCK = 1 << 16 };

typedef struct {
  uint64_t digits;
} hex_tokens;

static void *configure(const opilio_json *settings, opilio_faults *faults) {
  (void)faults;
  hex_tokens *self = opilio_memory(sizeof *self);
  self->digits = (uint64_t)opilio_json_number(opilio_json_member(settings, "digits"), 32);
  return self;
}

static bool is_digit(uint8_t byte) {
  return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F');
}

static bool is_word_byte(uint8_t byte) {
  return byte == '_' || (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

// A token is a whole word: `deadbeef` in `deadbeefsteak` is not a token.
static void strip(const void *plugin, opilio_document document, opilio_spans *out) {
  const hex_tokens *self = plugin;
  uint64_t length = opilio_document_length(document);
  uint64_t start = 0, end = 0, digits = 0;
  bool is_hexadecimal = true;
  for (uint64_t block = 0; block < length; block += BLOCK) {
    opilio_bytes bytes = opilio_document_read(document, block, BLOCK);
    for (size_t at = 0; at < bytes.len; at++) {
      uint8_t byte = bytes.ptr[at];
      uint64_t here = block + at;
      if (is_digit(byte)) {
        if (digits++ == 0) start = here;
        end = here + 1;
      } else if (is_word_byte(byte)) {
        is_hexadecimal = false;
      } else if (byte != '-' || digits == 0) {
        if (is_hexadecimal && digits >= self->digits) opilio_span(out, start, end - start);
        digits = 0;
        is_hexadecimal = true;
      }
    }
  }
  if (is_hexadecimal && digits >= self->digits) opilio_span(out, start, end - start);
}

static const opilio_plugin exported = {
    .name = "hex-tokens",
    .version = "0.1.0",
    .summary = "Leaves long hexadecimal tokens out of the digest.",
    .settings_schema = settings_schema,
    .configure = configure,
    .media_types = (const char *const[]){"text/*", "application/json", "application/xhtml+xml", "application/xml", NULL},
    .strip = strip,
};

OPILIO_EXPORT(&exported);
