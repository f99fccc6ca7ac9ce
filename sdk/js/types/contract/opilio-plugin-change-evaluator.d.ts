/// <reference path="./opilio-plugin-documents.d.ts" />
declare module 'opilio:plugin/change-evaluator@0.3.0' {
  /**
   * Compares the document with the last archived version. `last` is the fingerprint of that version; missing at the
   * first visit, and if another plugin or other settings made it.
   */
  export function compare(document: Document, visit: Visit, last: Uint8Array | undefined): Comparison;
  export type Document = import('opilio:plugin/documents@0.3.0').Document;
  export type Visit = import('opilio:plugin/documents@0.3.0').Visit;
  /**
   * The result of a comparison.
   * # Variants
   * 
   * ## `"changed"`
   * 
   * The document is a new version.
   * ## `"unchanged"`
   * 
   * The bytes differ, but the document is not a new version.
   */
  export type Difference = 'changed' | 'unchanged';
  /**
   * A result, and a fingerprint for the next comparison.
   */
  export interface Comparison {
    /**
     * None leaves the answer to the next evaluator. If all evaluators do so, the document has changed.
     */
    difference?: Difference,
    /**
     * Data that the host keeps if it archives this version, and passes to `compare` at the next visit. 4 KiB at most by
     * default; more is a plugin error.
     */
    fingerprint?: Uint8Array,
    /**
     * The reason for the log, such as `98 % alike`. May be empty.
     */
    reason: string,
  }
}
