/// <reference path="./opilio-plugin-documents.d.ts" />
declare module 'opilio:plugin/change-evaluator@0.2.0' {
  /**
   * `last` is the fingerprint of the last archived version; none at the first visit, and where another plugin or
   * other settings made it.
   */
  export function compare(document: Document, visit: Visit, last: Uint8Array | undefined): Comparison;
  export type Document = import('opilio:plugin/documents@0.2.0').Document;
  export type Visit = import('opilio:plugin/documents@0.2.0').Visit;
  /**
   * # Variants
   * 
   * ## `"changed"`
   * 
   * A new version.
   * ## `"unchanged"`
   * 
   * Different bytes, and all the same no new version.
   */
  export type Difference = 'changed' | 'unchanged';
  export interface Comparison {
    /**
     * None leaves the answer to the next evaluator, and where all do so the document has changed.
     */
    difference?: Difference,
    /**
     * What the host is to keep of this version, should it be archived, and hand over at the next visit: at most
     * 4 KiB by default, more is a fault.
     */
    fingerprint?: Uint8Array,
    /**
     * Why, for the log, such as `98 % alike`; may be empty.
     */
    reason: string,
  }
}
