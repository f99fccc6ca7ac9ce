/// <reference path="./opilio-plugin-documents.d.ts" />
declare module 'opilio:plugin/precedence@0.2.0' {
  /**
   * One answer for each candidate, in the same order; none leaves it to the next plugin of the stack, and at last to
   * the profile. The document is the page they were found on, whole; none for seeds.
   */
  export function rankCandidates(candidates: Candidates, document: Document | undefined): Array<number | undefined>;
  /**
   * None leaves the answer to the next plugin of the stack, and at last to the profile.
   */
  export function rankQueue(queue: Queue): number | undefined;
  export type Candidates = import('opilio:plugin/documents@0.2.0').Candidates;
  export type Document = import('opilio:plugin/documents@0.2.0').Document;
  export type Queue = import('opilio:plugin/documents@0.2.0').Queue;
}
