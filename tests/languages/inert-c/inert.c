// Tries clocks, randomness, files, sockets, the environment and standard input of the C library. Reports the results as links.

#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <opilio.h>

static void report(opilio_extraction *out, const char *name, opilio_text result) {
  opilio_link(out, result, OPILIO_LINK, opilio_text_of(name));
}

static void extract(const void *plugin, opilio_document document, opilio_extraction *out) {
  (void)plugin;
  if (opilio_contains(opilio_document_text(document), OPILIO_TEXT("give up"))) opilio_fail("asked to give up");
  struct timespec first, second, before_sleep, after_sleep;
  clock_gettime(CLOCK_REALTIME, &first);
  clock_gettime(CLOCK_MONOTONIC, &before_sleep);
  sleep(3600);
  clock_gettime(CLOCK_MONOTONIC, &after_sleep);
  clock_gettime(CLOCK_REALTIME, &second);
  report(out, "clock", opilio_format("%lld", (long long)first.tv_sec));
  report(out, "moved", opilio_format("%lld", (long long)(second.tv_sec - first.tv_sec)));
  // `sleep` returns at once, and moves only the monotonic clock, by an hour.
  report(out, "waited", opilio_format("%lld", (long long)(after_sleep.tv_sec - before_sleep.tv_sec)));
  unsigned char random[4] = {0};
  int random_error = getentropy(random, sizeof random);
  report(out, "random", opilio_format("%d %02x%02x%02x%02x", random_error, random[0], random[1], random[2], random[3]));
  report(out, "file", opilio_text_of(fopen("/etc/passwd", "r") ? "opened" : "none"));
  report(out, "written", opilio_text_of(fopen("file", "w") ? "opened" : "none"));
  // This C library cannot create sockets, and the plugin has not inherited one.
  report(out, "socket", opilio_text_of(accept(3, NULL, NULL) < 0 && send(3, "x", 1, 0) < 0 ? "none" : "there"));
  report(out, "environment", opilio_text_of(getenv("PATH") ? "there" : "none"));
  report(out, "input", opilio_text_of(getchar() == EOF ? "none" : "some"));
}

static const opilio_plugin exported = {
    .name = "inert",
    .version = "1.0.0",
    .summary = "Tries to reach outside of the sandbox.",
    .extract = extract,
};

OPILIO_EXPORT(&exported);
