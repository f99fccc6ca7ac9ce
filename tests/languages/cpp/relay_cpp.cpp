// Reports the first line of a document as a link and the rest as a fragment. Fails on the texts `fail` and `wrong`.

#include <string_view>
#include <vector>

#include <opilio.hpp>

static void extract(const void *, opilio_document document, opilio_extraction *out) {
  auto text = opilio::view(opilio_document_text(document));
  if (text == "fail") opilio_fail("relay-cpp was told to fail");
  if (text == "wrong") std::vector<int>(1).at(text.size());
  auto end = text.find('\n');
  opilio_link(out, opilio::text(text.substr(0, end)), OPILIO_LINK, OPILIO_TEXT("relay/cpp"));
  if (end != text.npos) {
    opilio_fragment_text_at(out, "application/x-relay-c", end + 1, text.size() - end - 1, OPILIO_TEXT("rest"));
  }
}

static const char *const media_types[] = {"application/x-relay-cpp", nullptr};

static const opilio_plugin exported = [] {
  opilio_plugin made{};
  made.name = "relay-cpp";
  made.version = "1.0.0";
  made.summary = "Reports the first line as a link and the rest as a fragment.";
  made.media_types = media_types;
  made.extract = extract;
  return made;
}();

OPILIO_EXPORT(&exported);
