/// <reference path="./opilio-plugin-documents.d.ts" />
/// <reference path="./opilio-plugin-types.d.ts" />
declare module 'opilio:plugin/wait-evaluator@0.2.0' {
  /**
   * None leaves the answer to the next evaluator of the stack.
   */
  export function evaluate(visit: Visit): Wait | undefined;
  export type Visit = import('opilio:plugin/documents@0.2.0').Visit;
  export type Duration = import('opilio:plugin/types@0.2.0').Duration;
  export interface Wait {
    /**
     * From now until the next visit. The host keeps it within the profile's limits.
     */
    nextVisit: Duration,
    /**
     * Ask again at this earlier time, without a visit, should circumstances change by then.
     */
    askAgain?: Duration,
  }
}
