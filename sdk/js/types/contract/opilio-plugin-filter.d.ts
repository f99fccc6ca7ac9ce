/// <reference path="./opilio-plugin-documents.d.ts" />
/// <reference path="./opilio-plugin-types.d.ts" />
declare module 'opilio:plugin/filter@0.2.0' {
  /**
   * Rules on candidates, all outlinks of a page in one call. Stages scope, pre-fetch, and plugin where it guards one
   * that is asked about candidates. Answers stand in the same order.
   */
  export function judgeCandidates(stage: Stage, candidates: Candidates): Array<Ruling>;
  /**
   * Rules on a response. At mid-fetch the document has headers and no content.
   */
  export function judgeDocument(stage: Stage, document: Document, visit: Visit): Ruling;
  export type Candidates = import('opilio:plugin/documents@0.2.0').Candidates;
  export type Document = import('opilio:plugin/documents@0.2.0').Document;
  export type Visit = import('opilio:plugin/documents@0.2.0').Visit;
  export type Duration = import('opilio:plugin/types@0.2.0').Duration;
  /**
   * Where on a URI's way the question is put.
   */
  export type Stage = StageScope | StagePreFetch | StageMidFetch | StagePostFetch | StageExtract | StageArchive | StagePlugin | StageOther;
  /**
   * Does a found URI belong to the crawl?
   */
  export interface StageScope {
    tag: 'scope',
  }
  /**
   * May it be fetched now?
   */
  export interface StagePreFetch {
    tag: 'pre-fetch',
  }
  /**
   * Headers have come: shall the body?
   */
  export interface StageMidFetch {
    tag: 'mid-fetch',
  }
  /**
   * The response is complete.
   */
  export interface StagePostFetch {
    tag: 'post-fetch',
  }
  /**
   * Shall links be extracted from it?
   */
  export interface StageExtract {
    tag: 'extract',
  }
  /**
   * Shall it be archived?
   */
  export interface StageArchive {
    tag: 'archive',
  }
  /**
   * May the plugin that this filter guards see it?
   */
  export interface StagePlugin {
    tag: 'plugin',
  }
  export interface StageOther {
    tag: 'other',
    val: string,
  }
  export type Verdict = VerdictAccept | VerdictReject | VerdictPass | VerdictUnchanged | VerdictRetry | VerdictOther;
  export interface VerdictAccept {
    tag: 'accept',
  }
  export interface VerdictReject {
    tag: 'reject',
  }
  /**
   * No opinion: what was decided before stands.
   */
  export interface VerdictPass {
    tag: 'pass',
  }
  /**
   * Mid-fetch alone: the headers say that nothing has changed; the body is not fetched.
   */
  export interface VerdictUnchanged {
    tag: 'unchanged',
  }
  /**
   * Post-fetch alone: not a success; fetch it again after this time.
   */
  export interface VerdictRetry {
    tag: 'retry',
    val: Duration,
  }
  export interface VerdictOther {
    tag: 'other',
    val: string,
  }
  /**
   * In a stack the last ruling that is not `pass` decides.
   */
  export interface Ruling {
    verdict: Verdict,
    /**
     * Why, for `explain` and the scope log, such as `more than 20 hops`; may be empty.
     */
    reason: string,
  }
}
