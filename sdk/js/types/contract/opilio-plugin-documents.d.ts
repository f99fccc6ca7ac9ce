/// <reference path="./opilio-plugin-types.d.ts" />
declare module 'opilio:plugin/documents@0.2.0' {
  export type Candidate = import('opilio:plugin/types@0.2.0').Candidate;
  export type ContentState = import('opilio:plugin/types@0.2.0').ContentState;
  export type Duration = import('opilio:plugin/types@0.2.0').Duration;
  export type Header = import('opilio:plugin/types@0.2.0').Header;
  export type Instant = import('opilio:plugin/types@0.2.0').Instant;
  export type KeptValue = import('opilio:plugin/types@0.2.0').KeptValue;
  export type NamedValue = import('opilio:plugin/types@0.2.0').NamedValue;
  export type Neighbourhood = import('opilio:plugin/types@0.2.0').Neighbourhood;
  export type PastVisit = import('opilio:plugin/types@0.2.0').PastVisit;
  export type Signal = import('opilio:plugin/types@0.2.0').Signal;
  
  export class Candidates {
    /**
     * This type does not have a public constructor.
     */
    private constructor();
    /**
    * How many there are; at least one.
    */
    length(): number;
    /**
    * Normalised URIs, as they would be fetched.
    */
    uris(): string;
    /**
    * SURT forms, as scope prefixes are compared with: `http://(org,example,www,)/path`; https reads http.
    */
    surts(): string;
    /**
    * Hop paths from the seed, the hop that found the candidate included; empty for seeds. Longer than 50 hops
    * they read `N+` and the last 50.
    */
    hopPaths(): string;
    /**
    * Where on the page they were found, such as `a/@href`; empty for seeds.
    */
    contexts(): string;
    /**
    * Pages they were found on; empty for seeds. Outlinks of one page all have the same.
    */
    vias(): string;
    /**
    * SURT forms of `vias`; empty for seeds.
    */
    viaSurts(): string;
    /**
    * Seeds they descend from; empty where the profile does not keep that.
    */
    sources(): string;
    /**
    * Which of them are seeds, or redirects from one that the profile counts as seeds.
    */
    seeds(): Array<boolean>;
    /**
    * The servers' addresses; empty where they are not known at this stage.
    */
    addresses(): string;
    /**
    * All there is of one, the first being 0. Traps past the end.
    */
    get(index: number): Candidate;
  }
  
  export class Document {
    /**
     * This type does not have a public constructor.
     */
    private constructor();
    /**
    * The URI it was fetched from. For a fragment: that of the document it stands in.
    */
    uri(): string;
    /**
    * What its relative references resolve against: the URI, until an extractor reports another.
    */
    base(): string;
    /**
    * HTTP status, or a code of the glossary.
    */
    status(): number;
    /**
    * Every header in the order received; empty for a fragment.
    */
    headers(): Array<Header>;
    /**
    * All values of one header, in order; the name is compared without case.
    */
    header(name: string): Array<string>;
    /**
    * Media type, lower-case, without parameters; `application/octet-stream` where the server sent none.
    */
    mediaType(): string;
    /**
    * Encoding label as `text` used it, such as `utf-8` or `windows-1252`; none for what is not text.
    */
    charset(): string | undefined;
    /**
    * Where a fragment stood, such as `script`; none for a whole document.
    */
    fragment(): string | undefined;
    /**
    * Content length, transfer and content codings removed. At most what the profile lets plugins see.
    */
    length(): bigint;
    /**
    * Content from `offset`, at most `length` bytes; shorter at the end, empty past it.
    */
    read(offset: bigint, length: number): Uint8Array;
    /**
    * The whole content as text, decoded by the host; what cannot be decoded reads U+FFFD.
    */
    text(): string;
    /**
    * A note that an earlier plugin of this visit left.
    */
    note(name: string): string | undefined;
    /**
    * Leaves a note for later plugins of this visit, and for the metadata record. The last value holds.
    * Notes past the limit (64 of 4 KiB by default) are dropped and counted.
    */
    setNote(name: string, value: string): void;
    /**
    * Adds an annotation to the document's line in the crawl log, such as `botblock:cloudflare`.
    * Blanks and commas become underscores.
    */
    annotate(annotation: string): void;
    /**
    * What this plugin last kept with the URI under a name that its description declares (`keeps`), at this visit
    * or an earlier one; none where nothing was kept. Other plugins have values of their own under the same name.
    */
    attribute(name: string): KeptValue | undefined;
    /**
    * Keeps a value with the URI for later visits, with the version that the description declares; an empty one
    * removes it. It counts once the visit is completed. A name that is not declared, or a value past the limit
    * (1 KiB by default), is dropped and counted.
    */
    setAttribute(name: string, value: string): void;
    /**
    * What this plugin last kept for the site: the host (and port) of the URI.
    */
    siteValue(name: string): KeptValue | undefined;
    /**
    * Keeps a value for the site, under the same terms (4 KiB by default). Where several visits to a site are
    * under way at once, the last to be completed stands.
    */
    setSiteValue(name: string, value: string): void;
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
    * URIs that wait in it.
    */
    queued(): bigint;
    /**
    * Completed fetches that were successes; a revisit is not a new one.
    */
    succeeded(): bigint;
    /**
    * Completed fetches that failed.
    */
    failed(): bigint;
    /**
    * Bytes fetched.
    */
    bytes(): bigint;
    /**
    * Precedence of its best waiting URI; none where none waits.
    */
    best(): number | undefined;
    /**
    * The precedence that the profile gives it.
    */
    base(): number;
    /**
    * The time at which this is asked.
    */
    now(): Instant;
  }
  
  export class Visit {
    /**
     * This type does not have a public constructor.
     */
    private constructor();
    /**
    * What was asked for, as filters saw it at discovery.
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
    * Media type of this visit's response; empty before the fetch.
    */
    mediaType(): string;
    /**
    * State of the content; `unknown` before it has been judged.
    */
    state(): ContentState;
    /**
    * Size of the content; none before the fetch or where no body was fetched.
    */
    size(): bigint | undefined;
    /**
    * The wait that led to this visit; none at the first.
    */
    lastWait(): Duration | undefined;
    /**
    * How long past its due time this visit began.
    */
    overdue(): Duration;
    /**
    * Completed visits, this one included once fetched.
    */
    visits(): bigint;
    /**
    * Versions seen, this one included once it is new or changed.
    */
    versions(): bigint;
    /**
    * Earlier visits, newest first; as many as the profile keeps.
    */
    history(): Array<PastVisit>;
    /**
    * Header of the last archived version that the host keeps: `etag`, `last-modified`.
    */
    validator(name: string): string | undefined;
    /**
    * Links found on the document when it was last extracted.
    */
    outlinks(): bigint;
    /**
    * Times the document has been found linked, as far as the crawl counts.
    */
    inlinks(): bigint;
    /**
    * News since the last visit, newest first.
    */
    signals(): Array<Signal>;
    /**
    * What is known of the documents around it.
    */
    neighbourhood(): Array<Neighbourhood>;
    /**
    * Values the host computes for whole queues or crawls, under their names; none where it keeps no such value.
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
    * A note that a plugin of this visit left.
    */
    note(name: string): string | undefined;
  }
}
