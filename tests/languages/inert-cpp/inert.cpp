// Reaches for everything that the library of C++ offers outside of the sandbox, and says what came of it.

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

#include <opilio.hpp>

static void say(opilio_extraction *out, const char *what, const std::string &came) {
  opilio_link(out, opilio::kept(came), OPILIO_LINK, opilio_text_of(what));
}

static void extract(const void *, opilio_document, opilio_extraction *out) {
  using namespace std::chrono;
  auto first = system_clock::now();
  auto waited = steady_clock::now();
  for (volatile int turn = 0; turn < 100000; turn = turn + 1) continue;
  say(out, "clock", std::to_string(duration_cast<seconds>(first.time_since_epoch()).count()));
  say(out, "moved", std::to_string((system_clock::now() - first).count()));
  // Each look at the clock that is only for waiting moves it by a microsecond.
  say(out, "waited", std::to_string(duration_cast<microseconds>(steady_clock::now() - waited).count()));
  std::random_device random;
  say(out, "random", std::to_string(random()));
  say(out, "environment", std::getenv("PATH") ? "there" : "none");
  say(out, "input", std::cin.get() == std::char_traits<char>::eof() ? "none" : "some");
}

static const opilio_plugin exported = [] {
  opilio_plugin made{};
  made.name = "inert";
  made.version = "1.0.0";
  made.summary = "Reaches for what is outside.";
  made.extract = extract;
  return made;
}();

OPILIO_EXPORT(&exported);
