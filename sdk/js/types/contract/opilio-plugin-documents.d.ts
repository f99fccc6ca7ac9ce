/// <reference path="./opilio-plugin-types.d.ts" />
declare module 'opilio:plugin/documents@0.3.0' {
  export type Candidate = import('opilio:plugin/types@0.3.0').Candidate;
  export type ContentState = import('opilio:plugin/types@0.3.0').ContentState;
  export type Duration = import('opilio:plugin/types@0.3.0').Duration;
  export type Header = import('opilio:plugin/types@0.3.0').Header;
  export type Instant = import('opilio:plugin/types@0.3.0').Instant;
  export type KeptValue = import('opilio:plugin/types@0.3.0').KeptValue;
  export type NamedValue = import('opilio:plugin/types@0.3.0').NamedValue;
  export type Neighbourhood = import('opilio:plugin/types@0.3.0').Neighbourhood;
  export type PastVisit = import('opilio:plugin/types@0.3.0').PastVisit;
  export type Signal = import('opilio:plugin/types@0.3.0').Signal;
  /**
   * The result of an action on a page.
   */
  export type ActionResult = ActionResultDone | ActionResultClicked | ActionResultValue | ActionResultNoElement | ActionResultNotIdle | ActionResultInvalid | ActionResultException | ActionResultRefused | ActionResultOther;
  /**
   * The action was carried out.
   */
  export interface ActionResultDone {
    tag: 'done',
  }
  /**
   * This number of elements was clicked.
   */
  export interface ActionResultClicked {
    tag: 'clicked',
    val: number,
  }
  /**
   * The result of a script as JSON, up to 1 MiB. It comes from the page, so it can be anything.
   */
  export interface ActionResultValue {
    tag: 'value',
    val: string,
  }
  /**
   * No element matches, or none matched in time.
   */
  export interface ActionResultNoElement {
    tag: 'no-element',
  }
  /**
   * The network did not become idle in time.
   */
  export interface ActionResultNotIdle {
    tag: 'not-idle',
  }
  /**
   * A selector or regular expression is invalid. The text names the error.
   */
  export interface ActionResultInvalid {
    tag: 'invalid',
    val: string,
  }
  /**
   * The script threw this exception, or took too long.
   */
  export interface ActionResultException {
    tag: 'exception',
    val: string,
  }
  /**
   * The host did not carry out the action, for this reason.
   */
  export interface ActionResultRefused {
    tag: 'refused',
    val: string,
  }
  /**
   * A result of a later contract version.
   */
  export interface ActionResultOther {
    tag: 'other',
    val: string,
  }
  
  export class Candidates {
    /**
     * This type does not have a public constructor.
     */
    private constructor();
    /**
    * Number of candidates; at least one.
    */
    length(): number;
    /**
    * Normalised URIs.
    */
    uris(): string;
    /**
    * SURT forms, as compared with scope prefixes: `http://(org,example,www,)/path`. `https` is written `http`.
    */
    surts(): string;
    /**
    * Hop paths from the seed, with the hop to the candidate itself; empty for seeds. A path of more than 50 hops is
    * written as `N+` and its last 50 hops, N being the number of the others.
    */
    hopPaths(): string;
    /**
    * Positions on the page, such as `a/@href`; empty for seeds.
    */
    contexts(): string;
    /**
    * URIs of the pages that contain them; empty for seeds. All outlinks of a page have the same.
    */
    vias(): string;
    /**
    * SURT forms of `vias`; empty for seeds.
    */
    viaSurts(): string;
    /**
    * Seeds from which they were found; empty if not known.
    */
    sources(): string;
    /**
    * True for seeds, and for URIs to which seeds redirect.
    */
    seeds(): Array<boolean>;
    /**
    * IP addresses of the servers; empty if not known at this stage.
    */
    addresses(): string;
    /**
    * One candidate with all its fields. The first has index 0. An index past the end is a trap.
    */
    get(index: number): Candidate;
  }
  
  export class Document {
    /**
     * This type does not have a public constructor.
     */
    private constructor();
    /**
    * The URI from which it was fetched. A fragment has the URI of its document.
    */
    uri(): string;
    /**
    * The base of relative references: the URI, until an extractor reports another.
    */
    base(): string;
    /**
    * Fetch status: an HTTP status, or a negative code of the glossary.
    */
    status(): number;
    /**
    * All headers in the order received; empty for a fragment.
    */
    headers(): Array<Header>;
    /**
    * All values of one header, in the order received. Case of the name is ignored.
    */
    header(name: string): Array<string>;
    /**
    * Media type, lower-case, without parameters; `application/octet-stream` if the server sent none.
    */
    mediaType(): string;
    /**
    * Label of the encoding that `text` used, such as `utf-8` or `windows-1252`; none for binary content. A byte order
    * mark overrides the declared encoding.
    */
    charset(): string | undefined;
    /**
    * Position of a fragment in its document, such as `script`; none for a whole document.
    */
    fragment(): string | undefined;
    /**
    * Length of the content in bytes, without transfer and content codings. The profile limits how much plugins see.
    */
    length(): bigint;
    /**
    * At most `length` bytes of the content from `offset`: fewer at the end of the content, none past it.
    */
    read(offset: bigint, length: number): Uint8Array;
    /**
    * The whole content as text, without byte order mark. The host decodes it; invalid bytes become U+FFFD. Content
    * without `charset` is read as UTF-8.
    */
    text(): string;
    /**
    * A note set during this visit, by this plugin or an earlier one.
    */
    note(name: string): string | undefined;
    /**
    * Leaves a note for later plugins of this visit and for the metadata record. A later value replaces an earlier one.
    * The host drops and counts notes past the limit (64 notes, 4 KiB each, by default).
    */
    setNote(name: string, value: string): void;
    /**
    * Adds an annotation to the document's line in the crawl log, such as `botblock:cloudflare`. Blanks, commas and
    * unprintable characters become underscores. If it begins like one of the crawl's own annotations, such as
    * `unchanged`, the host puts the plugin's name in front. It is cut to 256 bytes. The host drops and counts
    * annotations past the limit (32 for each visit by default).
    */
    annotate(annotation: string): void;
    /**
    * The value that this plugin last kept with the URI under a name of its description (`keeps`), at this visit or an
    * earlier one; none if it kept no value. Each plugin has values of its own.
    */
    attribute(name: string): KeptValue | undefined;
    /**
    * Keeps a value with the URI for later visits, with the version in the description. An empty value removes it. The
    * value is stored when the visit is completed. The host drops and counts values under undeclared names and values
    * past the limits (16 values for each plugin and URI, 1 KiB each, by default).
    */
    setAttribute(name: string, value: string): void;
    /**
    * The value that this plugin last kept for the site: the host and port of the URI.
    */
    siteValue(name: string): KeptValue | undefined;
    /**
    * Keeps a value for the site, under the same terms (16 values for each plugin and site, 4 KiB each, by default). Of
    * several visits to a site at once, the one that is completed last determines the value.
    */
    setSiteValue(name: string, value: string): void;
  }
  
  export class Page {
    /**
     * This type does not have a public constructor.
     */
    private constructor();
    /**
    * The URI in the browser, with changes by scripts. It may have a fragment.
    */
    uri(): string;
    /**
    * Title of the document; empty if it has none.
    */
    title(): string;
    /**
    * Number of elements.
    */
    elements(): bigint;
    /**
    * Length of the visible text in UTF-16 code units.
    */
    textLength(): bigint;
    /**
    * Height of the document.
    */
    scrollHeight(): bigint;
    /**
    * Height of the part above the window.
    */
    scrollTop(): bigint;
    /**
    * Height of the window.
    */
    windowHeight(): bigint;
    /**
    * Number of elements that match a selector of the last step's `count`. Missing at the first step, if the selector is
    * invalid, and if the last step did not name it.
    */
    count(selector: string): bigint | undefined;
    /**
    * Results of the last step's actions, in the same order; empty at the first step.
    */
    results(): Array<ActionResult>;
    /**
    * Number of requests in flight.
    */
    requestsInFlight(): number;
    /**
    * Time since the page was opened.
    */
    timeUsed(): Duration;
    /**
    * Time until the host ends the behaviours and takes the page as it is.
    */
    timeLeft(): Duration;
    /**
    * Number of this step; 0 is the one after loading. Each behaviour has steps of its own.
    */
    step(): number;
    /**
    * Number of steps that may follow this one. At 0 the actions of this step are the last.
    */
    stepsLeft(): number;
  }
  
  export class Queue {
    /**
     * This type does not have a public constructor.
     */
    private constructor();
    /**
    * Its name, such as `org,example,www,`.
    */
    name(): string;
    /**
    * Number of URIs that wait in it.
    */
    queued(): bigint;
    /**
    * Number of successful fetches. Revisits are not counted again.
    */
    succeeded(): bigint;
    /**
    * Number of failed fetches.
    */
    failed(): bigint;
    /**
    * Bytes fetched.
    */
    bytes(): bigint;
    /**
    * Precedence of its best waiting URI; none if no URI waits.
    */
    best(): number | undefined;
    /**
    * Its precedence in the profile.
    */
    base(): number;
    /**
    * The time of this call. Plugins have no other clock.
    */
    now(): Instant;
  }
  
  export class Visit {
    /**
     * This type does not have a public constructor.
     */
    private constructor();
    /**
    * The candidate as filters saw it at discovery.
    */
    candidate(): Candidate;
    /**
    * The time of this visit. Plugins have no other clock.
    */
    now(): Instant;
    /**
    * Fetch status of this visit; 0 before the fetch.
    */
    status(): number;
    /**
    * Media type of this visit's response; empty before the fetch. At a reconsideration, that of the last visit.
    */
    mediaType(): string;
    /**
    * State of the content; `unknown` before the comparison.
    */
    state(): ContentState;
    /**
    * Size of the content in bytes; none before the fetch, and if no body was fetched.
    */
    size(): bigint | undefined;
    /**
    * The wait before this visit; none at the first.
    */
    lastWait(): Duration | undefined;
    /**
    * Time from the due time to the beginning of this visit.
    */
    overdue(): Duration;
    /**
    * Number of completed visits, plus this one. At a reconsideration: completed visits only.
    */
    visits(): bigint;
    /**
    * Number of versions, with this one if it is new or changed.
    */
    versions(): bigint;
    /**
    * Earlier visits, newest first, those that failed for good included. The profile limits their number.
    */
    history(): Array<PastVisit>;
    /**
    * A header of the last archived version: `etag` or `last-modified`. The host keeps no others.
    */
    validator(name: string): string | undefined;
    /**
    * Number of links in the document at its last extraction.
    */
    outlinks(): bigint;
    /**
    * Number of pages of other registrable domains that embed the document, if the profile has `revisit.fade-after`.
    * Otherwise 0. Ordinary links are not counted.
    */
    inlinks(): bigint;
    /**
    * News since the last visit, newest first.
    */
    signals(): Array<Signal>;
    /**
    * Sums about related documents.
    */
    neighbourhood(): Array<Neighbourhood>;
    /**
    * A value that the host computes for whole queues or crawls; none if it has no value of this name.
    * `budget-price`: the marginal value of a visit (lambda) by which budgeted evaluators share a visit budget.
    */
    measure(name: string): number | undefined;
    /**
    * As `document.attribute`.
    */
    attribute(name: string): KeptValue | undefined;
    /**
    * As `document.set-attribute`.
    */
    setAttribute(name: string, value: string): void;
    /**
    * As `document.site-value`.
    */
    siteValue(name: string): KeptValue | undefined;
    /**
    * As `document.set-site-value`.
    */
    setSiteValue(name: string, value: string): void;
    /**
    * A note of a plugin of this visit.
    */
    note(name: string): string | undefined;
  }
}
