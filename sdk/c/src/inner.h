// Internal declarations of the SDK.
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
  // Items of lists and objects. Items of an object have names.
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

struct opilio_step_plan {
  exports_opilio_plugin_page_behavior_step_plan_t *answer;
  size_t actions_room;
  size_t count_room;
};

// Columns of candidates.
enum { URI, SURT, HOP_PATH, CONTEXT, VIA, VIA_SURT, SOURCE, ADDRESS, COLUMNS };

typedef struct {
  opilio_plugin_documents_borrow_candidates_t handle;
  size_t length;
  opilio_text *columns[COLUMNS];
  const bool *seeds;
  // The table of the last look-up, and its result for each candidate.
  opilio_text table;
  const bool *in_table;
} opilio_candidates;

// A candidate of a call, or the candidate of a visit (`whole`).
struct opilio_candidate {
  opilio_candidates *all;
  size_t at;
  opilio_plugin_types_candidate_t *whole;
};

opilio_candidates opilio_candidates_of(opilio_plugin_documents_borrow_candidates_t handle);

// Copies for answers. The bindings free them.
plugin_string_t opilio_owned(opilio_text text);
plugin_list_u8_t opilio_owned_bytes(opilio_bytes bytes);
// Conversions between the types of the bindings and the SDK, without a copy.
plugin_string_t opilio_lent(opilio_text text);
opilio_text opilio_borrowed(plugin_string_t text);
// Enlarges a list if it has no room for one more item.
void opilio_grow(void **list, size_t length, size_t *room, size_t size);

#endif
