// For plugins in C++: texts and bytes as the library has them. What they do is in opilio.h, which is C.
#ifndef OPILIO_HPP
#define OPILIO_HPP

#include <cstring>
#include <string_view>

#include "opilio.h"

namespace opilio {

inline std::string_view view(opilio_text text) { return {text.ptr, text.len}; }

inline std::string_view view(opilio_bytes bytes) { return {reinterpret_cast<const char *>(bytes.ptr), bytes.len}; }

// Of generated records, such as the URI of an event.
inline std::string_view view(plugin_string_t text) { return {reinterpret_cast<const char *>(text.ptr), text.len}; }

// Points to what is viewed, which must stay until the call is over: literals, texts of the host's, what `kept` has made.
inline opilio_text text(std::string_view view) { return {view.data(), view.size()}; }

inline opilio_bytes bytes(std::string_view view) { return {reinterpret_cast<const uint8_t *>(view.data()), view.size()}; }

// A copy that stays until the call is over, for strings that do not.
inline opilio_text kept(std::string_view view) {
  char *copy = static_cast<char *>(opilio_memory(view.size()));
  if (!view.empty()) std::memcpy(copy, view.data(), view.size());
  return {copy, view.size()};
}

}  // namespace opilio

#endif
