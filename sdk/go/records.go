package opilio

import (
	"fmt"
	"time"
)

// NamedValue is a value under a name.
type NamedValue struct{ Name, Value string }

// Header is one header field, as received.
type Header struct{ Name, Value string }

// Kept is a kept value, and the version of its format.
type Kept struct {
	Version uint32
	Value   string
}

// Span is Length bytes from Offset on.
type Span struct{ Offset, Length uint64 }

// Hop is how a URI was found.
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
	// PrerequisiteHop must be fetched before another URI (P).
	PrerequisiteHop
	// InferredHop follows from a convention, such as /favicon.ico (I).
	InferredHop
	// ManifestHop is in a list made for crawlers, such as a sitemap (M).
	ManifestHop
	// SubmitHop is the request that submitting a form sends (S).
	SubmitHop
)

// Link is a reference in a document, as written there.
type Link struct {
	URI string
	Hop Hop
	// Context is its place in the document, such as "a/@href".
	Context string
	// Base is the URI to resolve it against. Empty: the document's base.
	Base string
	// Submission is the form of a SubmitHop.
	Submission *Submission
	// Published and Modified are the dates that the page gives for the target. Zero: none.
	Published, Modified time.Time
	Attributes          []NamedValue
}

// Submission is a submitted form.
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
	// Context is its place in the document, such as "script".
	Context string
	// Base of its links. Empty: the document's base.
	Base string
}

// Extraction is the answer of an extractor for one document.
type Extraction struct {
	Links     []Link
	Fragments []Fragment
	// Base is the base URI that the document declares.
	Base string
	// Finished skips the extractors of last resort.
	Finished bool
	// Problem describes content that could not be read, for the log.
	Problem string
}

// Stage is the step of a visit at which a filter is called.
type Stage uint8

const (
	ScopeStage Stage = iota
	PreFetchStage
	MidFetchStage
	PostFetchStage
	ExtractStage
	RenderStage
	ArchiveStage
	PluginStage
	// OtherStage is a stage of a later contract.
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

// Accept makes a ruling that accepts. Reasons are for people and may be empty.
func Accept(reason string) Ruling { return Ruling{accept, 0, reason} }

// Reject makes a ruling that rejects.
func Reject(reason string) Ruling { return Ruling{reject, 0, reason} }

// Pass makes a ruling without an opinion.
func Pass() Ruling { return Ruling{pass, 0, ""} }

// Unchanged makes a ruling for mid-fetch: the headers show that nothing has changed.
func Unchanged(reason string) Ruling { return Ruling{unchanged, 0, reason} }

// Retry makes a ruling for post-fetch: the URI is fetched again after this time.
func Retry(after time.Duration, reason string) Ruling { return Ruling{retry, after, reason} }

// TooLarge is the error of a digest stripper for a document larger than this many bytes.
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
	// Fingerprint is passed to the next Compare as `last`. Nil: none.
	Fingerprint []byte
	Reason      string
}

// Wait is a wait evaluator's answer.
type Wait struct {
	NextVisit time.Duration
	// AskAgain is an earlier time at which the host asks again, without a visit. Zero: never.
	AskAgain time.Duration
}

// State is the state of a document's content.
type State uint8

const (
	NewState State = iota
	ChangedState
	UnchangedState
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

// Signal is a hint from elsewhere that a document has changed.
type Signal struct {
	At     time.Time
	Source string
	// Modified is the claimed date of change. Zero: none.
	Modified time.Time
}

// Neighbourhood has figures of documents that share something with this one.
type Neighbourhood struct {
	Shares                     string
	Documents, Visits, Changes uint64
	Observed                   time.Duration
}

// Finished is a URI whose visit succeeded, or failed for good.
type Finished struct {
	At        time.Time
	URI       string
	Status    int
	MediaType string
	// Size is negative if no body was fetched.
	Size int64
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

// Report is a file that replaces the observer's previous file of that name.
type Report struct{ File, Content string }
