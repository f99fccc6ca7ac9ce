// Native tests of plugins. Compile the plugin with the SDK's src/ and testing/, with any C compiler; README.md has the command.
// The program runs the cases of a folder, unless the tests define `main`.
#ifndef OPILIO_TEST_H
#define OPILIO_TEST_H

#include "opilio.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct {
  const char *uri;
  const char *media_type;
  int32_t status;
  opilio_text content;
} opilio_test_document;

// Returns a document for calls of plugins. Values that a plugin sets on it can be read with the functions of opilio.h.
opilio_document opilio_test_open(opilio_test_document document);

typedef struct {
  size_t cases;
  // Failed cases are reported on standard error.
  size_t failed;
} opilio_test_result;

// Runs the cases of a folder. `opilio plugin test` runs the same cases on the component. Every plugin must have a case.
opilio_test_result opilio_test_cases(const char *folder);

#ifdef __cplusplus
}
#endif

#endif
