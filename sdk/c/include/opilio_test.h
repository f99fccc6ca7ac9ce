// Tests of plugins without a host: compile the plugin, the SDK's src/ and test/double.c with any C compiler. README.md
// has the line. Golden cases need the component: `opilio plugin test`.
#ifndef OPILIO_TEST_H
#define OPILIO_TEST_H

#include "opilio.h"

typedef struct {
  const char *uri;
  const char *media_type;
  int32_t status;
  opilio_text content;
} opilio_test_document;

// A document as plugins are handed them; at most 64 of them.
opilio_document opilio_test_open(opilio_test_document document);

#endif
