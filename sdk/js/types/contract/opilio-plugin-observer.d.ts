/// <reference path="./opilio-plugin-types.d.ts" />
declare module 'opilio:plugin/observer@0.3.0' {
  /**
   * Receives a batch of results, in the order in which visits finished. Each result arrives once. Results of the last
   * seconds before a crash may arrive twice or not at all. `memory` is that of the last observation; empty at the first.
   * If a call with several results fails, the host calls the plugin again for each result alone, until eight of these
   * calls have failed.
   */
  export function observe(memory: Uint8Array, events: Array<Finished>): Observation;
  /**
   * Returns reports on the results so far. The host asks for them when an operator opens them, and at the end of the crawl.
   */
  export function report(memory: Uint8Array, now: Instant): Array<ReportFile>;
  export type ContentState = import('opilio:plugin/types@0.3.0').ContentState;
  export type Duration = import('opilio:plugin/types@0.3.0').Duration;
  export type Instant = import('opilio:plugin/types@0.3.0').Instant;
  export type NamedValue = import('opilio:plugin/types@0.3.0').NamedValue;
  /**
   * The result of a visit that is completed or has failed for good.
   */
  export interface Finished {
    /**
     * Beginning of the visit.
     */
    at: Instant,
    uri: string,
    /**
     * Fetch status: an HTTP status, or a negative code of the glossary.
     */
    status: number,
    mediaType: string,
    /**
     * Size of the content in bytes; none if no body was fetched.
     */
    size?: bigint,
    /**
     * Duration of the exchange; none if there was no exchange.
     */
    took?: Duration,
    state: ContentState,
    hopPath: string,
    via?: string,
    source?: string,
    queue: string,
    /**
     * Payload digest, such as `sha1:…`; none if there was no payload.
     */
    digest?: string,
    annotations: Array<string>,
    /**
     * Notes of the visit, and facts of later contract versions.
     */
    attributes: Array<NamedValue>,
  }
  /**
   * A line for one of the observer's own files.
   */
  export interface Line {
    /**
     * File name: lower-case words joined by hyphens, with an extension of 1 to 8 lower-case letters or digits, such as
     * `titles.csv`. At most 64 bytes. An answer names at most 16 files. Anything else is a plugin error.
     */
    file: string,
    text: string,
  }
  /**
   * The answer to a batch.
   */
  export interface Observation {
    /**
     * Data that the host passes to the next call. 1 MiB at most by default; more is a plugin error.
     */
    memory: Uint8Array,
    /**
     * Lines that the host appends to the observer's files in the job's directory, each with a line feed.
     */
    lines: Array<Line>,
  }
  /**
   * A whole report.
   */
  export interface ReportFile {
    /**
     * File name as in `line.file`; two reports of one answer with the same name are a plugin error. The report replaces
     * the earlier one of this name.
     */
    file: string,
    content: string,
  }
}
