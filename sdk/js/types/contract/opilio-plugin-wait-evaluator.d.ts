/// <reference path="./opilio-plugin-documents.d.ts" />
/// <reference path="./opilio-plugin-types.d.ts" />
declare module 'opilio:plugin/wait-evaluator@0.3.0' {
  /**
   * Returns the wait; none leaves it to the next evaluator of the stack. At a reconsideration, `visit.status` is 0, and
   * values that the plugin keeps are not stored.
   */
  export function evaluate(visit: Visit): Wait | undefined;
  export type Visit = import('opilio:plugin/documents@0.3.0').Visit;
  export type Duration = import('opilio:plugin/types@0.3.0').Duration;
  /**
   * A proposed wait.
   */
  export interface Wait {
    /**
     * Time from now until the next visit. The host keeps it within the profile's limits.
     */
    nextVisit: Duration,
    /**
     * Time from now until a reconsideration: the host calls the evaluator again then, without a visit, because facts may
     * have changed. The host keeps it between the profile's shortest wait and `next-visit`. At the time of the visit
     * itself there is no reconsideration. News about the document (`visit.signals`) brings the reconsideration forward.
     */
    askAgain?: Duration,
  }
}
