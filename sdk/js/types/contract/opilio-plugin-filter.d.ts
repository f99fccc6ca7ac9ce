/// <reference path="./opilio-plugin-documents.d.ts" />
/// <reference path="./opilio-plugin-types.d.ts" />
declare module 'opilio:plugin/filter@0.3.0' {
  /**
   * Rules on candidates: the outlinks of a page in one call, without those whose rulings the host knows. Called at stages
   * scope and pre-fetch, and at stage plugin if the guarded plugin is called about candidates. Returns one ruling for each
   * candidate, in the same order. Another number of answers is a plugin error. If a call with several candidates fails,
   * the host calls the plugin again for each candidate alone, until eight of these calls have failed.
   */
  export function judgeCandidates(stage: Stage, candidates: Candidates): Array<Ruling>;
  /**
   * Rules on a response, at the other stages. At mid-fetch the document has headers and no content.
   */
  export function judgeDocument(stage: Stage, document: Document, visit: Visit): Ruling;
  export type Candidates = import('opilio:plugin/documents@0.3.0').Candidates;
  export type Document = import('opilio:plugin/documents@0.3.0').Document;
  export type Visit = import('opilio:plugin/documents@0.3.0').Visit;
  export type Duration = import('opilio:plugin/types@0.3.0').Duration;
  /**
   * The question that a filter answers.
   */
  export type Stage = StageScope | StagePreFetch | StageMidFetch | StagePostFetch | StageExtract | StageRender | StageArchive | StagePlugin | StageOther;
  /**
   * Does a found URI belong to the crawl?
   */
  export interface StageScope {
    tag: 'scope',
  }
  /**
   * May the URI be fetched now?
   */
  export interface StagePreFetch {
    tag: 'pre-fetch',
  }
  /**
   * The response headers have arrived: shall the body be fetched?
   */
  export interface StageMidFetch {
    tag: 'mid-fetch',
  }
  /**
   * The response is complete: was the fetch a success?
   */
  export interface StagePostFetch {
    tag: 'post-fetch',
  }
  /**
   * Shall links be extracted from the document?
   */
  export interface StageExtract {
    tag: 'extract',
  }
  /**
   * Shall a browser render the page? Asked about pages that have been fetched, with their content. Without a verdict
   * the profile decides.
   */
  export interface StageRender {
    tag: 'render',
  }
  /**
   * Shall the document be archived?
   */
  export interface StageArchive {
    tag: 'archive',
  }
  /**
   * May the plugin that this filter guards see the document or the candidates?
   */
  export interface StagePlugin {
    tag: 'plugin',
  }
  /**
   * A question of a later contract version. Answer `pass`.
   */
  export interface StageOther {
    tag: 'other',
    val: string,
  }
  /**
   * The answer of a filter.
   */
  export type Verdict = VerdictAccept | VerdictReject | VerdictPass | VerdictUnchanged | VerdictRetry | VerdictOther;
  export interface VerdictAccept {
    tag: 'accept',
  }
  export interface VerdictReject {
    tag: 'reject',
  }
  /**
   * No opinion. Earlier answers stand.
   */
  export interface VerdictPass {
    tag: 'pass',
  }
  /**
   * Stage mid-fetch only: the headers show that nothing has changed. The body is not fetched. At other stages it is a
   * plugin error.
   */
  export interface VerdictUnchanged {
    tag: 'unchanged',
  }
  /**
   * Stage post-fetch only: the fetch was not a success. The URI is fetched again after this time. At other stages it
   * is a plugin error.
   */
  export interface VerdictRetry {
    tag: 'retry',
    val: Duration,
  }
  /**
   * A verdict of a later contract version. It is a plugin error.
   */
  export interface VerdictOther {
    tag: 'other',
    val: string,
  }
  /**
   * A verdict with its reason. In a stack the last verdict other than `pass` decides.
   */
  export interface Ruling {
    verdict: Verdict,
    /**
     * The reason for `explain` and the scope log, such as `more than 20 hops`. May be empty.
     */
    reason: string,
  }
}
