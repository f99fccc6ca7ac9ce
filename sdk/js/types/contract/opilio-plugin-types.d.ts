declare module 'opilio:plugin/types@0.2.0' {
  /**
   * Milliseconds since 1970-01-01T00:00:00Z.
   */
  export type Instant = bigint;
  /**
   * Milliseconds.
   */
  export type Duration = bigint;
  /**
   * A value under a name. Names are lower-case words joined by hyphens; a name given twice means both values.
   */
  export interface NamedValue {
    name: string,
    value: string,
  }
  /**
   * One header field, as received: the name in the server's own case, the value without surrounding blanks.
   * Bytes outside ASCII in a value are read as ISO-8859-1, so nothing is lost.
   */
  export interface Header {
    name: string,
    value: string,
  }
  /**
   * Bytes from `offset` up to `offset + length`, end excluded.
   */
  export interface Span {
    offset: bigint,
    length: bigint,
  }
  /**
   * How a URI was found: one letter of the hop path (glossary, "Discovery path").
   */
  export type Hop = HopLink | HopEmbed | HopSpeculative | HopRedirect | HopPrerequisite | HopInferred | HopManifest | HopSubmit | HopOther;
  /**
   * L: a link a reader follows, `<a href>`.
   */
  export interface HopLink {
    tag: 'link',
  }
  /**
   * E: needed to render the page, `<img src>`.
   */
  export interface HopEmbed {
    tag: 'embed',
  }
  /**
   * X: looks like a URI in script or text, may be none.
   */
  export interface HopSpeculative {
    tag: 'speculative',
  }
  /**
   * R: the server sent us on.
   */
  export interface HopRedirect {
    tag: 'redirect',
  }
  /**
   * P: needed before another URI may be fetched: DNS, robots.txt, a login.
   */
  export interface HopPrerequisite {
    tag: 'prerequisite',
  }
  /**
   * I: not in the material; deduced by convention, such as `/favicon.ico`.
   */
  export interface HopInferred {
    tag: 'inferred',
  }
  /**
   * M: named by a list made for crawlers, such as a sitemap.
   */
  export interface HopManifest {
    tag: 'manifest',
  }
  /**
   * S: what submitting a form would ask for.
   */
  export interface HopSubmit {
    tag: 'submit',
  }
  /**
   * A hop type of a later contract version. Treated as speculative.
   */
  export interface HopOther {
    tag: 'other',
    val: string,
  }
  /**
   * What the page itself says about when a linked resource appeared or changed (a feed item, a sitemap's lastmod).
   */
  export interface DateSignal {
    published?: Instant,
    modified?: Instant,
  }
  /**
   * A form submission that a `submit` link stands for.
   */
  export interface Submission {
    /**
     * `GET` or `POST`.
     */
    method: string,
    /**
     * Media type of `body`; empty for GET.
     */
    contentType: string,
    body: Uint8Array,
  }
  /**
   * What few links have.
   */
  export interface LinkDetails {
    submission?: Submission,
    dates?: DateSignal,
    /**
     * Anything else worth knowing, such as `rel` = `nofollow`. Filters see these.
     */
    attributes: Array<NamedValue>,
  }
  /**
   * A reference found in a document. The host resolves it, normalises it, and reports it in the
   * uri-errors log if it is none; a plugin need not do either.
   */
  export interface Link {
    /**
     * The reference as written, entities and escapes of the format undone; absolute or relative.
     */
    uri: string,
    hop: Hop,
    /**
     * Where it stood, such as `a/@href` or `css/url`. At most 200 bytes are kept.
     */
    context: string,
    /**
     * What to resolve it against instead of the document's base.
     */
    base?: string,
    details?: LinkDetails,
  }
  /**
   * Where the content of a fragment is.
   */
  export type FragmentContent = FragmentContentBytesAt | FragmentContentTextAt | FragmentContentText | FragmentContentBytes;
  /**
   * A span of the document's bytes, as `document.read` counts them.
   */
  export interface FragmentContentBytesAt {
    tag: 'bytes-at',
    val: Span,
  }
  /**
   * A span of the UTF-8 bytes of the document's text, as `document.text` returns it.
   */
  export interface FragmentContentTextAt {
    tag: 'text-at',
    val: Span,
  }
  /**
   * The fragment itself, where it had to be unescaped or put together.
   */
  export interface FragmentContentText {
    tag: 'text',
    val: string,
  }
  /**
   * The fragment itself, where it is not text.
   */
  export interface FragmentContentBytes {
    tag: 'bytes',
    val: Uint8Array,
  }
  /**
   * A part of a document that has a media type of its own: an inline script, a style attribute, JSON-LD.
   * The host hands it to the extractors that handle that type.
   */
  export interface Fragment {
    /**
     * Lower-case, without parameters, such as `text/css`.
     */
    mediaType: string,
    content: FragmentContent,
    /**
     * Where it stood, such as `script` or `@style`.
     */
    context: string,
    /**
     * The base of links in it, where it is not the document's.
     */
    base?: string,
  }
  /**
   * A URI that may become part of the crawl, or has.
   */
  export interface Candidate {
    /**
     * Normalised URI, as it would be fetched.
     */
    uri: string,
    /**
     * Its SURT form, as scope prefixes are compared with: `http://(org,example,www,)/path`; https reads http.
     */
    surt: string,
    /**
     * Hop path from the seed, this hop included; empty for a seed. Longer than 50 hops it reads `N+` and the last 50.
     */
    hopPath: string,
    /**
     * The page it was found on; none for a seed.
     */
    via?: string,
    /**
     * SURT form of `via`.
     */
    viaSurt?: string,
    /**
     * Where on the page it was found, such as `a/@href`; empty for a seed.
     */
    context: string,
    /**
     * It is a seed, or a redirect from one that the profile counts as a seed.
     */
    seed: boolean,
    /**
     * The seed it descends from, where the profile keeps that.
     */
    source?: string,
    /**
     * The server's address, where it is known at this stage.
     */
    address?: string,
    /**
     * Attributes of the link, and whatever later versions add.
     */
    attributes: Array<NamedValue>,
  }
  /**
   * The state of a document's content against the last archived version.
   * # Variants
   * 
   * ## `"new"`
   * 
   * First visit.
   * ## `"changed"`
   * 
   * Differs from the last archived version.
   * ## `"unchanged"`
   * 
   * The same, by digest, change evaluator or the server's word (304).
   * ## `"unknown"`
   * 
   * Nothing to compare with: no digest, or strippers have changed since.
   */
  export type ContentState = 'new' | 'changed' | 'unchanged' | 'unknown';
  /**
   * One visit of the past.
   */
  export interface PastVisit {
    at: Instant,
    /**
     * Fetch status: HTTP status or a negative code of the glossary.
     */
    status: number,
    state: ContentState,
    /**
     * Size of the content; none where no body was fetched.
     */
    size?: bigint,
  }
  /**
   * A value that a plugin has kept with a URI or a site.
   */
  export interface KeptValue {
    /**
     * The version of the value's form, as the plugin that kept it declared it then.
     */
    version: number,
    value: string,
  }
  /**
   * News of a document that came from elsewhere than a visit to it.
   */
  export interface Signal {
    at: Instant,
    /**
     * Where from: `feed`, `sitemap`, or a name of a later version.
     */
    source: string,
    /**
     * The date of change that it claimed.
     */
    modified?: Instant,
  }
  /**
   * What is known of the documents around this one.
   */
  export interface Neighbourhood {
    /**
     * What they share: `host`, `path-prefix`, `media-type`, or a name of a later version.
     */
    shares: string,
    documents: bigint,
    visits: bigint,
    /**
     * Visits that found a change.
     */
    changes: bigint,
    /**
     * Sum of the intervals between those visits.
     */
    observed: Duration,
  }
}
