// Tests of plugins without a host: compile the plugin with the SDK's src/ and testing/, with any C compiler. README.md has the
// line. The program puts the golden cases of a folder to the plugin, unless it has a main of its own.
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

// A document as plugins are handed them. What a plugin leaves with it can be asked as plugins ask for it.
opilio_document opilio_test_open(opilio_test_document document);

typedef struct {
  size_t cases;
  // What did not hold has been said on standard error.
  size_t failed;
} opilio_test_result;

// Puts the cases of a folder, the same that `opilio plugin test` puts to the component. Every plugin must have one.
opilio_test_result opilio_test_cases(const char *folder);

#ifdef __cplusplus
}
#endif

#endif
