/// <reference path="./opilio-plugin-types.d.ts" />
declare module 'opilio:plugin/observer@0.2.0' {
  /**
   * Batches in the order finished. Every event comes once, but for those of the last seconds before a crash, which may
   * come again or not at all. `memory` is that of the last observation; empty at the first.
   */
  export function observe(memory: Uint8Array, events: Array<Finished>): Observation;
  /**
   * Reports on what has been seen so far; asked when an operator wants to see one, and at the end.
   */
  export function report(memory: Uint8Array, now: Instant): Array<ReportFile>;
  export type ContentState = import('opilio:plugin/types@0.2.0').ContentState;
  export type Duration = import('opilio:plugin/types@0.2.0').Duration;
  export type Instant = import('opilio:plugin/types@0.2.0').Instant;
  export type NamedValue = import('opilio:plugin/types@0.2.0').NamedValue;
  /**
   * A URI whose visit is completed, or has failed for good.
   */
  export interface Finished {
    /**
     * When the visit began.
     */
    at: Instant,
    uri: string,
    /**
     * Fetch status: HTTP status or a negative code of the glossary.
     */
    status: number,
    mediaType: string,
    /**
     * Size of the content; none where no body was fetched.
     */
    size?: bigint,
    /**
     * How long the exchange took; none where there was none.
     */
    took?: Duration,
    state: ContentState,
    hopPath: string,
    via?: string,
    source?: string,
    queue: string,
    /**
     * Payload digest, such as `sha1:…`; none where there was no payload.
     */
    digest?: string,
    annotations: Array<string>,
    /**
     * Notes of the visit, and whatever later versions add.
     */
    attributes: Array<NamedValue>,
  }
  /**
   * A line for one of the observer's own files.
   */
  export interface Line {
    /**
     * The file: lower-case words joined by hyphens, with an ending of up to 8 letters, such as `titles.csv`.
     */
    file: string,
    text: string,
  }
  export interface Observation {
    /**
     * What the host is to hand over with the next batch: at most 1 MiB by default, more is a fault.
     */
    memory: Uint8Array,
    /**
     * Appended to the observer's files in the job's folder, a line feed after each.
     */
    lines: Array<Line>,
  }
  /**
   * A report, whole.
   */
  export interface ReportFile {
    /**
     * As `line.file`; it replaces the report of before.
     */
    file: string,
    content: string,
  }
}
