declare module 'opilio:plugin/types@0.3.0' {
  /**
   * Milliseconds since 1970-01-01T00:00:00Z.
   */
  export type Instant = bigint;
  /**
   * Milliseconds.
   */
  export type Duration = bigint;
  /**
   * A value with a name. Names are lower-case words joined by hyphens. A name can occur several times in a list, once for
   * each of its values.
   */
  export interface NamedValue {
    name: string,
    value: string,
  }
  /**
   * One header field as received: the name in the server's case, the value without outer blanks. Bytes outside ASCII are
   * read as ISO-8859-1, so that no byte is lost.
   */
  export interface Header {
    name: string,
    value: string,
  }
  /**
   * Bytes from `offset` to `offset + length`, without the latter. A span that reaches past the end is a plugin error.
   */
  export interface Span {
    offset: bigint,
    length: bigint,
  }
  /**
   * The type of a link: one letter of the hop path (glossary, "Discovery path").
   */
  export type Hop = HopLink | HopEmbed | HopSpeculative | HopRedirect | HopPrerequisite | HopInferred | HopManifest | HopSubmit | HopOther;
  /**
   * L: a link that a reader follows, such as `<a href>`.
   */
  export interface HopLink {
    tag: 'link',
  }
  /**
   * E: a requisite of the page, such as `<img src>`.
   */
  export interface HopEmbed {
    tag: 'embed',
  }
  /**
   * X: text that looks like a URI, in a script or elsewhere.
   */
  export interface HopSpeculative {
    tag: 'speculative',
  }
  /**
   * R: a redirect of the server.
   */
  export interface HopRedirect {
    tag: 'redirect',
  }
  /**
   * P: a prerequisite of another URI: DNS, robots.txt or a login. Only the host creates these. From a plugin, it
   * counts as speculative.
   */
  export interface HopPrerequisite {
    tag: 'prerequisite',
  }
  /**
   * I: deduced by convention and not in the document, such as `/favicon.ico`.
   */
  export interface HopInferred {
    tag: 'inferred',
  }
  /**
   * M: an entry of a list for crawlers, such as a sitemap.
   */
  export interface HopManifest {
    tag: 'manifest',
  }
  /**
   * S: the address of a submitted form.
   */
  export interface HopSubmit {
    tag: 'submit',
  }
  /**
   * A type of a later contract version. Counts as speculative.
   */
  export interface HopOther {
    tag: 'other',
    val: string,
  }
  /**
   * Dates that the document gives for a linked resource, such as those of a feed item or `lastmod` of a sitemap.
   */
  export interface DateSignal {
    published?: Instant,
    modified?: Instant,
  }
  /**
   * The form submission of a `submit` link. The host requests submissions by GET only; for others it writes a line into
   * `uri-errors.log`.
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
   * Details that few links have.
   */
  export interface LinkDetails {
    submission?: Submission,
    dates?: DateSignal,
    /**
     * Further facts, such as `rel` = `nofollow`. Filters see them.
     */
    attributes: Array<NamedValue>,
  }
  /**
   * A reference in a document. The host resolves and normalises it. Invalid references go to `uri-errors.log`.
   */
  export interface Link {
    /**
     * The reference as written, absolute or relative, with entities and escapes of the format decoded.
     */
    uri: string,
    hop: Hop,
    /**
     * Its position, such as `a/@href` or `css/url`. The host keeps 200 bytes at most.
     */
    context: string,
    /**
     * The base to resolve it against, if it is not that of the document.
     */
    base?: string,
    details?: LinkDetails,
  }
  /**
   * The content of a fragment.
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
   * A span of the UTF-8 bytes of the document's text, as `document.text` returns it. A span that cuts a character is a
   * plugin error.
   */
  export interface FragmentContentTextAt {
    tag: 'text-at',
    val: Span,
  }
  /**
   * The text itself, if it had to be decoded or joined.
   */
  export interface FragmentContentText {
    tag: 'text',
    val: string,
  }
  /**
   * The bytes themselves, if they are not text.
   */
  export interface FragmentContentBytes {
    tag: 'bytes',
    val: Uint8Array,
  }
  /**
   * A part of a document with a media type of its own: an inline script, a style attribute, JSON-LD. The host calls the
   * extractors of that type for it. It follows fragments within fragments, four levels deep, and drops and counts deeper
   * ones.
   */
  export interface Fragment {
    /**
     * Lower-case, without parameters, such as `text/css`. Any other form is a plugin error.
     */
    mediaType: string,
    content: FragmentContent,
    /**
     * Its position, such as `script` or `@style`.
     */
    context: string,
    /**
     * The base of links in it, if it is not that of the document.
     */
    base?: string,
  }
  /**
   * A URI that the crawl has found, with the facts of its discovery.
   */
  export interface Candidate {
    /**
     * Normalised URI.
     */
    uri: string,
    /**
     * SURT form, as compared with scope prefixes: `http://(org,example,www,)/path`. `https` is written `http`.
     */
    surt: string,
    /**
     * Hop path from the seed, with the hop to this URI; empty for a seed. A path of more than 50 hops is written as
     * `N+` and its last 50 hops, N being the number of the others.
     */
    hopPath: string,
    /**
     * The page that contains it; none for a seed.
     */
    via?: string,
    /**
     * SURT form of `via`.
     */
    viaSurt?: string,
    /**
     * Its position on the page, such as `a/@href`; empty for a seed.
     */
    context: string,
    /**
     * True for a seed, and for a URI to which a seed redirects.
     */
    seed: boolean,
    /**
     * The seed from which it was found, if known.
     */
    source?: string,
    /**
     * The server's IP address, if known at this stage.
     */
    address?: string,
    /**
     * Attributes of the link, and facts of later contract versions.
     */
    attributes: Array<NamedValue>,
  }
  /**
   * The state of a document's content, compared with the last archived version.
   * # Variants
   * 
   * ## `"new"`
   * 
   * First visit.
   * ## `"changed"`
   * 
   * The content differs from the last archived version.
   * ## `"unchanged"`
   * 
   * The content is the same, according to the digest, a change evaluator or the server (304).
   * ## `"unknown"`
   * 
   * A comparison is not possible: there is no digest, or strippers have changed since.
   */
  export type ContentState = 'new' | 'changed' | 'unchanged' | 'unknown';
  /**
   * An earlier visit.
   */
  export interface PastVisit {
    at: Instant,
    /**
     * Fetch status: an HTTP status, or a negative code of the glossary.
     */
    status: number,
    state: ContentState,
    /**
     * Size of the content in bytes; none if no body was fetched.
     */
    size?: bigint,
  }
  /**
   * A value that a plugin kept with a URI or for a site.
   */
  export interface KeptValue {
    /**
     * Version of the value's form, from the plugin's description at that time.
     */
    version: number,
    value: string,
  }
  /**
   * News about a document from another source than a visit to it.
   */
  export interface Signal {
    at: Instant,
    /**
     * The source: `feed`, `sitemap`, or a name of a later contract version.
     */
    source: string,
    /**
     * The date of change in the source.
     */
    modified?: Instant,
  }
  /**
   * Sums about the documents that share a property with this one.
   */
  export interface Neighbourhood {
    /**
     * The property: `host`, `path-prefix`, `media-type`, `depth` (number of links from the seed), `last-modified`
     * (whether the response had that header), or a name of a later contract version.
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
