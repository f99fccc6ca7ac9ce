// The SDK for plugins in C++: conversions between the types of opilio.h and std::string_view. Everything else is in opilio.h.
#ifndef OPILIO_HPP
#define OPILIO_HPP

#include <cstring>
#include <string_view>

#include "opilio.h"

namespace opilio {

inline std::string_view view(opilio_text text) { return {text.ptr, text.len}; }

inline std::string_view view(opilio_bytes bytes) { return {reinterpret_cast<const char *>(bytes.ptr), bytes.len}; }

// For texts of generated records, such as the URI of an event.
inline std::string_view view(plugin_string_t text) { return {reinterpret_cast<const char *>(text.ptr), text.len}; }

// Points to the viewed text, which must be valid until the call ends: a literal, a text of the host, or a result of `kept`.
inline opilio_text text(std::string_view view) { return {view.data(), view.size()}; }

inline opilio_bytes bytes(std::string_view view) { return {reinterpret_cast<const uint8_t *>(view.data()), view.size()}; }

// Returns a copy that is valid until the call ends, for strings that are not.
inline opilio_text kept(std::string_view view) {
  char *copy = static_cast<char *>(opilio_memory(view.size()));
  if (!view.empty()) std::memcpy(copy, view.data(), view.size());
  return {copy, view.size()};
}

}  // namespace opilio

#endif
