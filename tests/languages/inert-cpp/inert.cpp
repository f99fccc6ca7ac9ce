// Tries clocks, randomness, the environment and standard input of the C++ library. Reports the results as links.

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <random>
#include <string>

#include <opilio.hpp>

static void report(opilio_extraction *out, const char *name, const std::string &result) {
  opilio_link(out, opilio::kept(result), OPILIO_LINK, opilio_text_of(name));
}

static void extract(const void *, opilio_document, opilio_extraction *out) {
  using namespace std::chrono;
  auto first = system_clock::now();
  auto before = steady_clock::now();
  for (volatile int turn = 0; turn < 100000; turn = turn + 1) continue;
  report(out, "clock", std::to_string(duration_cast<seconds>(first.time_since_epoch()).count()));
  report(out, "moved", std::to_string((system_clock::now() - first).count()));
  // Each read of the monotonic clock moves it by one microsecond.
  report(out, "waited", std::to_string(duration_cast<microseconds>(steady_clock::now() - before).count()));
  std::random_device random;
  report(out, "random", std::to_string(random()));
  report(out, "environment", std::getenv("PATH") ? "there" : "none");
  report(out, "input", std::cin.get() == std::char_traits<char>::eof() ? "none" : "some");
}

static const opilio_plugin exported = [] {
  opilio_plugin made{};
  made.name = "inert";
  made.version = "1.0.0";
  made.summary = "Tries to reach outside of the sandbox.";
  made.extract = extract;
  return made;
}();

OPILIO_EXPORT(&exported);
