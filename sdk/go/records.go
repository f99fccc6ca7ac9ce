package opilio

import (
	"fmt"
	"time"
)

// NamedValue is a value with a name.
type NamedValue struct{ Name, Value string }

// Header is one header field, as received.
type Header struct{ Name, Value string }

// Kept is a value that a plugin kept at an earlier visit, with the version of its format (Keep.Version at that time).
type Kept struct {
	Version uint32
	Value   string
}

// Span is a range of bytes.
type Span struct{ Offset, Length uint64 }

// Hop is the type of a link: one letter of the hop path.
type Hop uint8

const (
	// LinkHop is a link that a reader follows (L).
	LinkHop Hop = iota
	// EmbedHop is a resource that the page needs (E).
	EmbedHop
	// SpeculativeHop is a text that looks like a URI (X).
	SpeculativeHop
	// RedirectHop is the target of a redirect (R).
	RedirectHop
	// PrerequisiteHop is for URIs that the host fetches before others, such as robots.txt (P). Links of plugins with this hop
	// count as speculative.
	PrerequisiteHop
	// InferredHop follows from a convention, such as /favicon.ico (I).
	InferredHop
	// ManifestHop is an entry of a list for crawlers, such as a sitemap (M).
	ManifestHop
	// SubmitHop is the request that submitting a form sends (S).
	SubmitHop
)

// Link is a reference in a document, as written there.
type Link struct {
	URI string
	Hop Hop
	// Context is the position of the link in the document, such as "a/@href".
	Context string
	// Base is the URI that the link resolves against. Empty: the document's base.
	Base string
	// Submission is the submitted form, for a SubmitHop.
	Submission *Submission
	// Published and Modified are the dates that the document states for the target. Zero: unknown.
	Published, Modified time.Time
	Attributes          []NamedValue
}

// Submission is a submitted form. Method is "GET" or "POST".
type Submission struct {
	Method, ContentType string
	Body                []byte
}

// Fragment is a part of a document with a media type of its own. Its content is the first of Text, Bytes, TextAt and
// BytesAt that is set.
type Fragment struct {
	MediaType string
	Text      string
	Bytes     []byte
	// TextAt is a span of the UTF-8 bytes of the document's text.
	TextAt *Span
	// BytesAt is a span of the document's bytes.
	BytesAt *Span
	// Context is the position of the fragment in the document, such as "script".
	Context string
	// Base is the URI that its links resolve against. Empty: the document's base.
	Base string
}

// Extraction is the answer of an extractor for one document.
type Extraction struct {
	Links     []Link
	Fragments []Fragment
	// Base is the base URI that the document declares.
	Base string
	// Finished skips the extractors that the profile lists as last resort.
	Finished bool
	// Problem describes content that could not be read, for the log. The host still uses the other results.
	Problem string
}

// Stage is the step of a visit at which a filter is called.
type Stage uint8

const (
	// ScopeStage asks whether a found URI belongs to the crawl.
	ScopeStage Stage = iota
	// PreFetchStage asks whether the URI may be fetched now.
	PreFetchStage
	// MidFetchStage asks whether the body is fetched, after the headers have arrived.
	MidFetchStage
	// PostFetchStage asks whether the fetch was a success.
	PostFetchStage
	// ExtractStage asks whether links are extracted from the document.
	ExtractStage
	// RenderStage asks whether a browser renders the page.
	RenderStage
	// ArchiveStage asks whether the document is archived.
	ArchiveStage
	// PluginStage asks whether the plugin that this filter guards is called.
	PluginStage
	// OtherStage is a stage of a later version of the contract. Return Pass().
	OtherStage
)

type verdict uint8

const (
	accept verdict = iota
	reject
	pass
	unchanged
	retry
)

// Ruling is a filter's answer. The zero value accepts.
type Ruling struct {
	verdict verdict
	after   time.Duration
	reason  string
}

// Accept returns a ruling that accepts. The reason is for operators; it may be empty.
func Accept(reason string) Ruling { return Ruling{accept, 0, reason} }

// Reject returns a ruling that rejects.
func Reject(reason string) Ruling { return Ruling{reject, 0, reason} }

// Pass returns a ruling without an opinion: the rulings of earlier filters stand.
func Pass() Ruling { return Ruling{pass, 0, ""} }

// Unchanged returns a ruling for MidFetchStage: the headers show that nothing has changed.
func Unchanged(reason string) Ruling { return Ruling{unchanged, 0, reason} }

// Retry returns a ruling for PostFetchStage: the URI is fetched again after this time.
func Retry(after time.Duration, reason string) Ruling { return Ruling{retry, after, reason} }

// TooLarge is the error of a digest stripper for a document with more bytes than this limit.
type TooLarge uint64

func (size TooLarge) Error() string { return fmt.Sprintf("larger than %d bytes", uint64(size)) }

// Difference is a change evaluator's decision.
type Difference uint8

const (
	// NoAnswer leaves the answer to the next evaluator.
	NoAnswer Difference = iota
	// Differs means a new version.
	Differs
	// Same means that there is no new version.
	Same
)

// Comparison is a change evaluator's answer.
type Comparison struct {
	Difference Difference
	// Fingerprint is passed to Compare at the next visit as `last`, if the host archives this version. Nil: none.
	Fingerprint []byte
	Reason      string
}

// Wait is a wait evaluator's answer.
type Wait struct {
	// NextVisit is the time from now until the next visit.
	NextVisit time.Duration
	// AskAgain is the time from now until the host calls Evaluate again, without a visit. The host cuts it to NextVisit. Zero:
	// no such call.
	AskAgain time.Duration
}

// State is the state of a document's content, compared with the last archived version.
type State uint8

const (
	// NewState is the state at the first visit.
	NewState State = iota
	// ChangedState means that the content differs.
	ChangedState
	// UnchangedState means that the content is the same.
	UnchangedState
	// UnknownState means that there was no comparison.
	UnknownState
)

// PastVisit is an earlier visit.
type PastVisit struct {
	At     time.Time
	Status int
	State  State
	// Size is negative if no body was fetched.
	Size int64
}

// Signal is news about a document from another source than a visit to it.
type Signal struct {
	At time.Time
	// Source is "feed", "sitemap" or a name of a later version of the contract.
	Source string
	// Modified is the date of change in the source. Zero: unknown.
	Modified time.Time
}

// Neighbourhood has sums about the documents that share a property with this one.
type Neighbourhood struct {
	// Shares is the property: "host", "path-prefix", "media-type", "depth", "last-modified" or a name of a later version of
	// the contract.
	Shares string
	// Changes is the number of visits that found a change.
	Documents, Visits, Changes uint64
	// Observed is the sum of the intervals between those visits.
	Observed time.Duration
}

// Finished is a URI whose visit succeeded, or failed for good.
type Finished struct {
	At        time.Time
	URI       string
	Status    int
	MediaType string
	// Size is negative if no body was fetched.
	Size int64
	// Took is the duration of the exchange. Zero: there was no exchange.
	Took time.Duration
	State
	HopPath, Via, Source, Queue, Digest string
	Annotations                         []string
	Attributes                          []NamedValue
}

// Line is a line for one of the observer's files.
type Line struct{ File, Text string }

// Observation is an observer's answer.
type Observation struct {
	// Memory is passed to the next Observe.
	Memory []byte
	Lines  []Line
}

// Report is a whole file. It replaces the observer's previous file of this name.
type Report struct{ File, Content string }
