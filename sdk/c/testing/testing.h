// Internal declarations of native tests: building JSON, the test host, answers as JSON.
#ifndef OPILIO_TESTING_H
#define OPILIO_TESTING_H

#include "../src/inner.h"
#include "opilio_test.h"

// ---- json_writer.c

opilio_json opilio_json_of_text(opilio_text text);
opilio_json opilio_json_of_number(double number);
opilio_json opilio_json_of_boolean(bool boolean);
opilio_json opilio_json_empty(opilio_json_type list_or_object);
// Bytes are a list of numbers.
opilio_json opilio_json_of_bytes(opilio_bytes bytes);
void opilio_json_add(opilio_json *list, opilio_json item);
// The name is not copied.
void opilio_json_set(opilio_json *object, const char *name, opilio_json value);
opilio_text opilio_json_to_text(const opilio_json *json);
bool opilio_json_equal(const opilio_json *one, const opilio_json *other);
// Converts a list of numbers to bytes.
opilio_bytes opilio_json_bytes(const opilio_json *list);

// ---- host.c

// Returns a handle for a document, visit, queue, page or list of candidates of a case.
int32_t opilio_test_handle(const opilio_json *facts);
// Returns a value of a handle; NULL if the case leaves it out.
const opilio_json *opilio_test_fact(int32_t handle, const char *name);
// Checks for a charset other than UTF-8 that native tests can decode.
bool opilio_test_is_single_byte(opilio_text charset);
// Sets the host tables; NULL for none.
void opilio_test_tables(const opilio_json *tables);
// Returns an event for observers.
exports_opilio_plugin_observer_finished_t opilio_test_event(const opilio_json *facts);

// ---- answers_json.c

opilio_json opilio_answer_faults(const exports_opilio_plugin_setup_list_settings_fault_t *faults);
opilio_json opilio_answer_extractions(const exports_opilio_plugin_extractor_list_extraction_t *extractions);
opilio_json opilio_answer_ruling(const exports_opilio_plugin_filter_ruling_t *ruling);
opilio_json opilio_answer_rulings(const exports_opilio_plugin_filter_list_ruling_t *rulings);
opilio_json opilio_answer_spans(const exports_opilio_plugin_digest_stripper_list_span_t *spans);
opilio_json opilio_answer_strip_problem(const exports_opilio_plugin_digest_stripper_strip_problem_t *problem);
opilio_json opilio_answer_comparison(const exports_opilio_plugin_change_evaluator_comparison_t *comparison);
opilio_json opilio_answer_wait(const exports_opilio_plugin_wait_evaluator_wait_t *wait);
opilio_json opilio_answer_ranks(const plugin_list_option_u8_t *ranks);
opilio_json opilio_answer_observation(const exports_opilio_plugin_observer_observation_t *observation);
opilio_json opilio_answer_plan(const exports_opilio_plugin_page_behavior_step_plan_t *plan);
opilio_json opilio_answer_reports(const exports_opilio_plugin_observer_list_report_file_t *reports);

#endif
