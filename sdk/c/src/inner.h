// What the parts of the SDK share and plugins do not see.
#ifndef OPILIO_INNER_H
#define OPILIO_INNER_H

#include "opilio.h"

typedef enum {
  OPILIO_JSON_NULL, OPILIO_JSON_BOOLEAN, OPILIO_JSON_NUMBER, OPILIO_JSON_TEXT, OPILIO_JSON_LIST, OPILIO_JSON_OBJECT
} opilio_json_type;

struct opilio_json {
  opilio_json_type type;
  bool boolean;
  double number;
  opilio_text text;
  // Of lists and objects; names are those of an object's members.
  opilio_json *items;
  opilio_text *names;
  size_t length;
};

struct opilio_faults {
  exports_opilio_plugin_setup_list_settings_fault_t list;
};

struct opilio_extraction {
  exports_opilio_plugin_extractor_extraction_t *answer;
  size_t links_room;
  size_t fragments_room;
};

struct opilio_spans {
  exports_opilio_plugin_digest_stripper_list_span_t list;
  size_t room;
  bool failed;
  exports_opilio_plugin_digest_stripper_strip_problem_t problem;
};

struct opilio_observation {
  exports_opilio_plugin_observer_observation_t *answer;
  size_t room;
};

struct opilio_reports {
  exports_opilio_plugin_observer_list_report_file_t *answer;
  size_t room;
};

// Columns of the host, asked for when any candidate is first asked for its value.
enum { URI, SURT, HOP_PATH, CONTEXT, VIA, VIA_SURT, SOURCE, ADDRESS, COLUMNS };

typedef struct {
  opilio_plugin_documents_borrow_candidates_t handle;
  size_t length;
  opilio_text *columns[COLUMNS];
  const bool *seeds;
  // Of the table that was asked about last.
  opilio_text table;
  const bool *in_table;
} opilio_candidates;

// One of those, or the one of a visit.
struct opilio_candidate {
  opilio_candidates *all;
  size_t at;
  opilio_plugin_types_candidate_t *whole;
};

opilio_candidates opilio_candidates_of(opilio_plugin_documents_borrow_candidates_t handle);

// The answer's own copy, which the bindings free.
plugin_string_t opilio_owned(opilio_text text);
plugin_list_u8_t opilio_owned_bytes(opilio_bytes bytes);
// As the bindings have it, for as long as the call lasts.
plugin_string_t opilio_lent(opilio_text text);
opilio_text opilio_borrowed(plugin_string_t text);
// Room for one more item in a list that grows.
void opilio_grow(void **list, size_t length, size_t *room, size_t size);

#endif
