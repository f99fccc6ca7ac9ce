/// <reference path="./opilio-plugin-documents.d.ts" />
/// <reference path="./opilio-plugin-types.d.ts" />
declare module 'opilio:plugin/digest-stripper@0.3.0' {
  /**
   * Returns spans of the document's bytes, in any order. Overlapping bytes count once. The host replaces each span by one
   * blank and computes the digest of the result.
   */
  export function strip(document: Document): Array<Span>;
  export type Document = import('opilio:plugin/documents@0.3.0').Document;
  export type Span = import('opilio:plugin/types@0.3.0').Span;
  /**
   * The reason why a document cannot be stripped. The payload digest decides then: the same bytes are unchanged, other
   * bytes count as changed. The state of other bytes is unknown if the last version has no payload digest, or if a browser
   * rendered it. For a page that a browser rendered at this visit, a digest of all of its content decides.
   */
  export type StripProblem = StripProblemTooLarge | StripProblemOther;
  /**
   * The document has more bytes than the plugin's settings allow. The value is that limit.
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
