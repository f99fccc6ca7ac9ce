/// <reference path="./opilio-plugin-documents.d.ts" />
declare module 'opilio:plugin/precedence@0.3.0' {
  /**
   * Returns one precedence for each candidate, in the same order. None leaves it to the next plugin of the stack, and
   * after the last one to the profile. Another number of answers is a plugin error. `document` is the whole page that
   * contains the candidates; none for seeds.
   */
  export function rankCandidates(candidates: Candidates, document: Document | undefined): Array<number | undefined>;
  /**
   * Returns the precedence of a queue. None leaves it to the next plugin of the stack, and after the last one to the
   * profile.
   */
  export function rankQueue(queue: Queue): number | undefined;
  export type Candidates = import('opilio:plugin/documents@0.3.0').Candidates;
  export type Document = import('opilio:plugin/documents@0.3.0').Document;
  export type Queue = import('opilio:plugin/documents@0.3.0').Queue;
}
