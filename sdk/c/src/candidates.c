// Candidates of a call, or the candidate of a visit. The host returns a whole column when the plugin first reads one of its
// values.

#include <string.h>

#include "inner.h"

opilio_candidates opilio_candidates_of(opilio_plugin_documents_borrow_candidates_t handle) {
  return (opilio_candidates){.handle = handle, .length = opilio_plugin_documents_method_candidates_length(handle)};
}

// Splits a column into its lines. Each line ends in a line feed.
static opilio_text *lines(plugin_string_t column, size_t length) {
  opilio_text *lines = opilio_memory(length * sizeof *lines);
  const char *at = (const char *)column.ptr;
  const char *end = at + column.len;
  for (size_t n = 0; n < length; n++) {
    const char *stop = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;
    if (!stop) stop = end;
    lines[n] = (opilio_text){at, (size_t)(stop - at)};
    at = stop < end ? stop + 1 : end;
  }
  return lines;
}

static opilio_text in_column(opilio_candidates *all, size_t at, int column) {
  typedef void (*getter)(opilio_plugin_documents_borrow_candidates_t, plugin_string_t *);
  static const getter getters[COLUMNS] = {
      [URI] = opilio_plugin_documents_method_candidates_uris,
      [SURT] = opilio_plugin_documents_method_candidates_surts,
      [HOP_PATH] = opilio_plugin_documents_method_candidates_hop_paths,
      [CONTEXT] = opilio_plugin_documents_method_candidates_contexts,
      [VIA] = opilio_plugin_documents_method_candidates_vias,
      [VIA_SURT] = opilio_plugin_documents_method_candidates_via_surts,
      [SOURCE] = opilio_plugin_documents_method_candidates_sources,
      [ADDRESS] = opilio_plugin_documents_method_candidates_addresses,
  };
  if (!all->columns[column]) {
    plugin_string_t text;
    getters[column](all->handle, &text);
    all->columns[column] = lines(text, all->length);
  }
  return all->columns[column][at];
}

static opilio_text or_empty(plugin_option_string_t text) {
  return text.is_some ? opilio_borrowed(text.val) : OPILIO_TEXT("");
}

// Returns the whole record of a candidate.
static opilio_plugin_types_candidate_t *whole(const opilio_candidate *candidate) {
  if (candidate->whole) return candidate->whole;
  opilio_plugin_types_candidate_t *found = opilio_memory(sizeof *found);
  opilio_plugin_documents_method_candidates_get(candidate->all->handle, (uint32_t)candidate->at, found);
  return found;
}

opilio_text opilio_candidate_uri(const opilio_candidate *candidate) {
  if (candidate->whole) return opilio_borrowed(candidate->whole->uri);
  return in_column(candidate->all, candidate->at, URI);
}

opilio_text opilio_candidate_surt(const opilio_candidate *candidate) {
  if (candidate->whole) return opilio_borrowed(candidate->whole->surt);
  return in_column(candidate->all, candidate->at, SURT);
}

opilio_text opilio_candidate_hop_path(const opilio_candidate *candidate) {
  if (candidate->whole) return opilio_borrowed(candidate->whole->hop_path);
  return in_column(candidate->all, candidate->at, HOP_PATH);
}

opilio_text opilio_candidate_context(const opilio_candidate *candidate) {
  if (candidate->whole) return opilio_borrowed(candidate->whole->context);
  return in_column(candidate->all, candidate->at, CONTEXT);
}

opilio_text opilio_candidate_via(const opilio_candidate *candidate) {
  if (candidate->whole) return or_empty(candidate->whole->via);
  return in_column(candidate->all, candidate->at, VIA);
}

opilio_text opilio_candidate_via_surt(const opilio_candidate *candidate) {
  if (candidate->whole) return or_empty(candidate->whole->via_surt);
  return in_column(candidate->all, candidate->at, VIA_SURT);
}

opilio_text opilio_candidate_source(const opilio_candidate *candidate) {
  if (candidate->whole) return or_empty(candidate->whole->source);
  return in_column(candidate->all, candidate->at, SOURCE);
}

opilio_text opilio_candidate_address(const opilio_candidate *candidate) {
  if (candidate->whole) return or_empty(candidate->whole->address);
  return in_column(candidate->all, candidate->at, ADDRESS);
}

bool opilio_candidate_seed(const opilio_candidate *candidate) {
  if (candidate->whole) return candidate->whole->seed;
  opilio_candidates *all = candidate->all;
  if (!all->seeds) {
    plugin_list_bool_t seeds;
    opilio_plugin_documents_method_candidates_seeds(all->handle, &seeds);
    all->seeds = seeds.ptr;
  }
  return all->seeds[candidate->at];
}

bool opilio_candidate_attribute(const opilio_candidate *candidate, const char *name, opilio_text *value) {
  opilio_plugin_types_list_named_value_t attributes = whole(candidate)->attributes;
  for (size_t n = 0; n < attributes.len; n++) {
    if (!opilio_is(opilio_borrowed(attributes.ptr[n].name), name)) continue;
    *value = opilio_borrowed(attributes.ptr[n].value);
    return true;
  }
  return false;
}

// Looks up the candidate of a visit, by its URI or its SURT form, depending on the kind of the table.
static bool is_whole_in_table(const opilio_candidate *candidate, opilio_text table) {
  plugin_string_t name = opilio_lent(table);
  opilio_plugin_tables_kind_t kind = {0};
  if (!opilio_plugin_tables_kind_of(&name, &kind)) return false;
  bool by_surt = kind.tag == OPILIO_PLUGIN_TABLES_KIND_SURT_PREFIXES;
  opilio_row row;
  return opilio_table_find(table, by_surt ? opilio_candidate_surt(candidate) : opilio_candidate_uri(candidate), &row);
}

bool opilio_candidate_is_in_table(const opilio_candidate *candidate, opilio_text table) {
  opilio_candidates *all = candidate->all;
  if (!all) return is_whole_in_table(candidate, table);
  if (!all->in_table || all->table.len != table.len || memcmp(all->table.ptr, table.ptr, table.len)) {
    plugin_string_t name = opilio_lent(table);
    plugin_list_bool_t found;
    opilio_plugin_tables_find_candidates(&name, all->handle, &found);
    all->in_table = found.ptr;
    all->table = table;
  }
  return all->in_table[candidate->at];
}
