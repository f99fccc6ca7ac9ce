/// <reference path="./opilio-plugin-documents.d.ts" />
/// <reference path="./opilio-plugin-types.d.ts" />
declare module 'opilio:plugin/digest-stripper@0.2.0' {
  /**
   * Spans of the document's bytes, in any order; overlaps count once. Each is replaced by one blank before digesting.
   */
  export function strip(document: Document): Array<Span>;
  export type Document = import('opilio:plugin/documents@0.2.0').Document;
  export type Span = import('opilio:plugin/types@0.2.0').Span;
  /**
   * Why nothing can be said. The content state becomes unknown.
   */
  export type StripProblem = StripProblemTooLarge | StripProblemOther;
  /**
   * Larger than the plugin's setting allows.
   */
  export interface StripProblemTooLarge {
    tag: 'too-large',
    val: bigint,
  }
  export interface StripProblemOther {
    tag: 'other',
    val: string,
  }
}
