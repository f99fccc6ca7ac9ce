package opilio

import (
	"fmt"
	"time"
)

// NamedValue is a value under a name.
type NamedValue struct{ Name, Value string }

// Header is one header field, as received.
type Header struct{ Name, Value string }

// Kept is a value that was kept, and the version of its form.
type Kept struct {
	Version uint32
	Value   string
}

// Span is bytes from Offset on.
type Span struct{ Offset, Length uint64 }

// Hop is how a URI was found.
type Hop uint8

const (
	// Link is followed by a reader (L).
	LinkHop Hop = iota
	// EmbedHop is needed to render the page (E).
	EmbedHop
	// SpeculativeHop looks like a URI and may be none (X).
	SpeculativeHop
	// RedirectHop is where the server sent us (R).
	RedirectHop
	// PrerequisiteHop is needed before another URI (P).
	PrerequisiteHop
	// InferredHop is deduced by convention (I).
	InferredHop
	// ManifestHop is named by a list made for crawlers (M).
	ManifestHop
	// SubmitHop is what submitting a form would ask for (S).
	SubmitHop
)

// Link is a reference found in a document, as written there.
type Link struct {
	URI string
	Hop Hop
	// Context is where it stood, such as "a/@href".
	Context string
	// Base is what to resolve it against, where that is not the document's base.
	Base string
	// Submission is the form that a SubmitHop stands for.
	Submission *Submission
	// Published and Modified are what the page says of the target; zero where it does not.
	Published, Modified time.Time
	Attributes          []NamedValue
}

// Submission is a form that is sent.
type Submission struct {
	Method, ContentType string
	Body                []byte
}

// Fragment is a part of a document with a media type of its own. Its content is the first of Text, Bytes, TextAt and
// BytesAt that is there.
type Fragment struct {
	MediaType string
	Text      string
	Bytes     []byte
	// TextAt is a span of the UTF-8 bytes of the document's text.
	TextAt *Span
	// BytesAt is a span of the document's bytes.
	BytesAt *Span
	// Context is where it stood, such as "script".
	Context string
	// Base of its links, where that is not the document's.
	Base string
}

// Extraction is what one document gave.
type Extraction struct {
	Links     []Link
	Fragments []Fragment
	// Base is the one that the document declares.
	Base string
	// Finished keeps extractors of last resort out.
	Finished bool
	// Problem is what could not be read, for the log.
	Problem string
}

// Stage is where a filter is asked.
type Stage uint8

const (
	ScopeStage Stage = iota
	PreFetchStage
	MidFetchStage
	PostFetchStage
	ExtractStage
	ArchiveStage
	PluginStage
	// OtherStage is one of a later contract.
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

// Accept says yes. The reason, here and below, is for people and may be empty.
func Accept(reason string) Ruling { return Ruling{accept, 0, reason} }

// Reject says no.
func Reject(reason string) Ruling { return Ruling{reject, 0, reason} }

// Pass has no opinion.
func Pass() Ruling { return Ruling{pass, 0, ""} }

// Unchanged says, at mid-fetch, that the headers show no change.
func Unchanged(reason string) Ruling { return Ruling{unchanged, 0, reason} }

// Retry says, at post-fetch, to fetch it again after a while.
func Retry(after time.Duration, reason string) Ruling { return Ruling{retry, after, reason} }

// TooLarge is the error of a stripper to whom a document is too large.
type TooLarge uint64

func (size TooLarge) Error() string { return fmt.Sprintf("larger than %d bytes", uint64(size)) }

// Difference is whether a document has changed.
type Difference uint8

const (
	// NoAnswer leaves it to the next evaluator.
	NoAnswer Difference = iota
	// Differs is a new version.
	Differs
	// Same is no new version.
	Same
)

// Comparison is a change evaluator's answer.
type Comparison struct {
	Difference Difference
	// Fingerprint comes back as `last` at the next visit; nil where there is none.
	Fingerprint []byte
	Reason      string
}

// Wait is a wait evaluator's answer.
type Wait struct {
	NextVisit time.Duration
	// AskAgain is an earlier time to be asked at without a visit; zero for none.
	AskAgain time.Duration
}

// State is that of a document's content.
type State uint8

const (
	NewState State = iota
	ChangedState
	UnchangedState
	UnknownState
)

// PastVisit is one visit of the past.
type PastVisit struct {
	At     time.Time
	Status int
	State  State
	// Size is negative where no body was fetched.
	Size int64
}

// Signal is news of a document from elsewhere.
type Signal struct {
	At     time.Time
	Source string
	// Modified is zero where none was claimed.
	Modified time.Time
}

// Neighbourhood is what is known of the documents around one.
type Neighbourhood struct {
	Shares                     string
	Documents, Visits, Changes uint64
	Observed                   time.Duration
}

// Finished is a URI whose visit is completed, or has failed for good.
type Finished struct {
	At        time.Time
	URI       string
	Status    int
	MediaType string
	// Size is negative where no body was fetched.
	Size int64
	Took time.Duration
	State
	HopPath, Via, Source, Queue, Digest string
	Annotations                         []string
	Attributes                          []NamedValue
}

// Line is one for a file of the observer's.
type Line struct{ File, Text string }

// Observation is an observer's answer.
type Observation struct {
	// Memory comes back with the next batch.
	Memory []byte
	Lines  []Line
}

// Report is a whole file.
type Report struct{ File, Content string }
