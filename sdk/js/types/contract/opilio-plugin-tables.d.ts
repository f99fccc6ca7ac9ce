/// <reference path="./opilio-plugin-documents.d.ts" />
declare module 'opilio:plugin/tables@0.2.0' {
  /**
   * What sort of table this is; none where the profile names no such table, and then every look-up finds nothing.
   */
  export function kindOf(table: string): Kind | undefined;
  /**
   * The row for a key.
   */
  export function find(table: string, key: string): Row | undefined;
  /**
   * Which of the candidates have a row: by their SURT forms in `surt-prefixes`, by their URIs in the other kinds.
   * Costs no copy of the candidates.
   */
  export function findCandidates(table: string, candidates: Candidates): Array<boolean>;
  export type Candidates = import('opilio:plugin/documents@0.2.0').Candidates;
  export type Kind = KindSurtPrefixes | KindRegexes | KindKeyValues | KindOther;
  /**
   * SURT prefixes. A key is a SURT form; the longest prefix that it begins with is the row.
   */
  export interface KindSurtPrefixes {
    tag: 'surt-prefixes',
  }
  /**
   * Regular expressions (RE2 syntax). A key is any text; the first expression that matches somewhere is the row.
   */
  export interface KindRegexes {
    tag: 'regexes',
  }
  /**
   * Keys with values. The row is the one whose key equals the key looked up.
   */
  export interface KindKeyValues {
    tag: 'key-values',
  }
  export interface KindOther {
    tag: 'other',
    val: string,
  }
  /**
   * A row that was found.
   */
  export interface Row {
    /**
     * The prefix, expression or key, as its table has it.
     */
    key: string,
    /**
     * What stands beside it; empty where nothing does.
     */
    value: string,
  }
}
