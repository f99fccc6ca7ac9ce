// Reports the first line of a document as a link and the rest as a fragment. Fails on the texts `fail` and `wrong`.

#include <string.h>

#include <opilio.h>

static void extract(const void *plugin, opilio_document document, opilio_extraction *out) {
  (void)plugin;
  opilio_text text = opilio_document_text(document);
  if (opilio_is(text, "fail")) opilio_fail("relay-c was told to fail");
  if (opilio_is(text, "wrong")) *(volatile char *)(uintptr_t)0xFFFFFFF0u = 1;
  const char *end = memchr(text.ptr, '\n', text.len);
  size_t line = end ? (size_t)(end - text.ptr) : text.len;
  opilio_link(out, (opilio_text){text.ptr, line}, OPILIO_LINK, OPILIO_TEXT("relay/c"));
  if (end) opilio_fragment_text_at(out, "application/x-relay-go", line + 1, text.len - line - 1, OPILIO_TEXT("rest"));
}

static const opilio_plugin exported = {
    .name = "relay-c",
    .version = "1.0.0",
    .summary = "Reports the first line as a link and the rest as a fragment.",
    .media_types = (const char *const[]){"application/x-relay-c", NULL},
    .extract = extract,
};

OPILIO_EXPORT(&exported);
