// A plugin that uses the C++ standard library with opilio.h. It returns a link for each section of a menu.

#include <opilio.h>

#include <set>
#include <string>
#include <string_view>

static const char settings_schema[] =
    "{\"type\": \"object\", \"additionalProperties\": false, \"properties\": {"
    "\"mark\": {\"type\": \"string\", \"default\": \"section:\", \"description\": \"Text before the name of a section.\"}}}";

struct Sections {
  std::string mark;
};

static void *configure(const opilio_json *settings, opilio_faults *faults) {
  opilio_text mark = opilio_json_text(opilio_json_member(settings, "mark"), OPILIO_TEXT("section:"));
  if (mark.len == 0) opilio_fault(faults, OPILIO_TEXT("/mark"), OPILIO_TEXT("is empty"));
  return new Sections{std::string(mark.ptr, mark.len)};
}

static void extract(const void *from, opilio_document document, opilio_extraction *out) {
  const auto &mark = static_cast<const Sections *>(from)->mark;
  opilio_text whole = opilio_document_text(document);
  std::string_view text(whole.ptr, whole.len);
  // Each section counts once. The set sorts them by name.
  std::set<std::string_view> names;
  for (size_t at = 0; (at = text.find(mark, at)) != text.npos;) {
    at += mark.size();
    names.insert(text.substr(at, text.find_first_of(" \n<\"", at) - at));
  }
  // The texts of the links.
  static std::set<std::string> links;
  for (auto name : names) {
    const auto &link = *links.insert("/" + std::string(name) + "/").first;
    opilio_link(out, {link.data(), link.size()}, OPILIO_LINK, OPILIO_TEXT("section"));
  }
}

static const char *const media_types[] = {"text/html", nullptr};

static const opilio_plugin exported = [] {
  opilio_plugin plugin{};
  plugin.name = "sections";
  plugin.version = "0.1.0";
  plugin.summary = "Finds the sections of a menu.";
  plugin.settings_schema = settings_schema;
  plugin.media_types = media_types;
  plugin.configure = configure;
  plugin.extract = extract;
  return plugin;
}();

OPILIO_EXPORT(&exported);
