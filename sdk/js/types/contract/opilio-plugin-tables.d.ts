/// <reference path="./opilio-plugin-documents.d.ts" />
declare module 'opilio:plugin/tables@0.3.0' {
  /**
   * The kind of a table; none if the profile has no table of this name. Look-ups in such a table find nothing.
   */
  export function kindOf(table: string): Kind | undefined;
  /**
   * Finds the row for a key.
   */
  export function find(table: string, key: string): Row | undefined;
  /**
   * Returns true for each candidate that has a row, in the same order. Keys are the SURT forms for kind `surt-prefixes`,
   * and the URIs for other kinds. The candidates are not copied to the plugin.
   */
  export function findCandidates(table: string, candidates: Candidates): Array<boolean>;
  export type Candidates = import('opilio:plugin/documents@0.3.0').Candidates;
  /**
   * A kind of table.
   */
  export type Kind = KindSurtPrefixes | KindRegexes | KindKeyValues | KindOther;
  /**
   * SURT prefixes. A key is a SURT form. `find` returns the row with the longest prefix of the key. If a prefix occurs
   * twice, the last row counts.
   */
  export interface KindSurtPrefixes {
    tag: 'surt-prefixes',
  }
  /**
   * Regular expressions (RE2 syntax). A key is any text. `find` returns the first row whose expression matches
   * somewhere in the key.
   */
  export interface KindRegexes {
    tag: 'regexes',
  }
  /**
   * Keys with values. `find` returns the row with the same key. If a key occurs twice, the last row counts.
   */
  export interface KindKeyValues {
    tag: 'key-values',
  }
  /**
   * A kind of a later contract version.
   */
  export interface KindOther {
    tag: 'other',
    val: string,
  }
  /**
   * A row of a table.
   */
  export interface Row {
    /**
     * The prefix, expression or key.
     */
    key: string,
    /**
     * The value of the row; empty if it has none.
     */
    value: string,
  }
}
