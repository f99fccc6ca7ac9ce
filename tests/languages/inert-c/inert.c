// Reaches for everything that the C library offers outside of the sandbox, and says what came of it.

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <opilio.h>

static void say(opilio_extraction *out, const char *what, opilio_text came) {
  opilio_link(out, came, OPILIO_LINK, opilio_text_of(what));
}

static void extract(const void *plugin, opilio_document document, opilio_extraction *out) {
  (void)plugin;
  if (opilio_contains(opilio_document_text(document), OPILIO_TEXT("give up"))) opilio_fail("asked to give up");
  struct timespec first, second, waited, until;
  clock_gettime(CLOCK_REALTIME, &first);
  clock_gettime(CLOCK_MONOTONIC, &waited);
  sleep(3600);
  clock_gettime(CLOCK_MONOTONIC, &until);
  clock_gettime(CLOCK_REALTIME, &second);
  say(out, "clock", opilio_format("%lld", (long long)first.tv_sec));
  say(out, "moved", opilio_format("%lld", (long long)(second.tv_sec - first.tv_sec)));
  // An hour passes at once, on the clock that is only for waiting.
  say(out, "waited", opilio_format("%lld", (long long)(until.tv_sec - waited.tv_sec)));
  unsigned char random[4] = {0};
  int unseeded = getentropy(random, sizeof random);
  say(out, "random", opilio_format("%d %02x%02x%02x%02x", unseeded, random[0], random[1], random[2], random[3]));
  say(out, "file", opilio_text_of(fopen("/etc/passwd", "r") ? "opened" : "none"));
  say(out, "written", opilio_text_of(fopen("file", "w") ? "opened" : "none"));
  // No socket can be made at all in this C library; there is none that was handed over either.
  say(out, "socket", opilio_text_of(accept(3, NULL, NULL) < 0 && send(3, "x", 1, 0) < 0 ? "none" : "there"));
  say(out, "environment", opilio_text_of(getenv("PATH") ? "there" : "none"));
  say(out, "input", opilio_text_of(getchar() == EOF ? "none" : "some"));
}

static const opilio_plugin exported = {
    .name = "inert",
    .version = "1.0.0",
    .summary = "Reaches for what is outside.",
    .extract = extract,
};

OPILIO_EXPORT(&exported);
