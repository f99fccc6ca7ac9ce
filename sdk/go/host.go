package opilio

import "time"

// Document is a response, or a fragment of one.
type Document interface {
	// URI is the URI that was fetched.
	URI() string
	// Base is the URI that relative references resolve against.
	Base() string
	// Status is the HTTP status, or a negative fetch status.
	Status() int
	// Headers returns all headers as received; none for a fragment.
	Headers() []Header
	// Header returns all values of one header, in order. The case of the name is ignored.
	Header(name string) []string
	// MediaType is in lower case, without parameters.
	MediaType() string
	// Charset is the encoding of the content. It is empty if the content is not text.
	Charset() string
	// Fragment returns the position of a fragment in its document, such as "script". It returns false for a whole document.
	Fragment() (string, bool)
	// Length is the length of the content in bytes.
	Length() uint64
	// Read returns at most length bytes from offset: fewer at the end of the content, and none past it.
	Read(offset uint64, length uint32) []byte
	// Text returns the whole content, decoded by the host. Invalid bytes are U+FFFD.
	Text() string
	// Note returns a note that a plugin has set during this visit.
	Note(name string) (string, bool)
	// SetNote sets a note for later plugins of this visit and for the metadata record.
	SetNote(name, value string)
	// Annotate adds an annotation to the document's line in the crawl log.
	Annotate(annotation string)
	// Attribute returns a value that the plugin keeps with the URI.
	Attribute(name string) (Kept, bool)
	// SetAttribute keeps a value with the URI. About.Keeps must declare its name. An empty value removes it.
	SetAttribute(name, value string)
	// SiteValue returns a value that the plugin keeps with the site.
	SiteValue(name string) (Kept, bool)
	// SetSiteValue keeps a value with the site. About.Keeps must declare its name. An empty value removes it.
	SetSiteValue(name, value string)
}

// Candidate is a URI that the crawl has found, or a seed. The SDK copies a value from the host when its method is called.
type Candidate interface {
	URI() string
	SURT() string
	HopPath() string
	// Context is the position on the page, such as "a/@href"; empty for a seed.
	Context() string
	// Via, ViaSURT, Source and Address are empty if there is no such value.
	Via() string
	ViaSURT() string
	Source() string
	Address() string
	Seed() bool
	Attributes() []NamedValue
	// IsInTable looks the candidate up in a host table.
	IsInTable(table string) bool
}

// Visit is the state of a URI in the crawl.
type Visit interface {
	Candidate() Candidate
	// Now is the time of this visit.
	Now() time.Time
	// Status is the HTTP status, or a negative fetch status. It is 0 before the fetch.
	Status() int
	// MediaType is empty before the fetch. At a reconsideration (Wait.AskAgain), it is that of the last visit.
	MediaType() string
	// State is UnknownState until the content has been compared with the last version.
	State() State
	// Size is negative if no body was fetched.
	Size() int64
	// LastWait returns the wait before this visit. It returns false at the first visit.
	LastWait() (time.Duration, bool)
	// Overdue is the time from the due time to the beginning of this visit.
	Overdue() time.Duration
	// Visits is the number of completed visits, plus this one. At a reconsideration, it is the completed visits only.
	Visits() uint64
	// Versions is the number of versions, with this one if it is new or changed.
	Versions() uint64
	// History returns earlier visits, newest first.
	History() []PastVisit
	// Validator returns the header etag or last-modified of the last archived version.
	Validator(name string) (string, bool)
	// Outlinks is the number of links in the document at its last extraction.
	Outlinks() uint64
	// Inlinks is the number of pages of other domains that embed the document. It is 0 unless the profile has
	// revisit.fade-after.
	Inlinks() uint64
	// Signals returns the signals since the last visit, newest first.
	Signals() []Signal
	Neighbourhood() []Neighbourhood
	// Measure returns a value that the host computes for whole queues or crawls, such as "budget-price".
	Measure(name string) (float64, bool)
	// Note returns a note that a plugin has set during this visit.
	Note(name string) (string, bool)
	// The following methods are those of Document.
	Attribute(name string) (Kept, bool)
	SetAttribute(name, value string)
	SiteValue(name string) (Kept, bool)
	SetSiteValue(name, value string)
}

// Page is a page in a browser, as it was just before the call. Lengths are CSS pixels of the page's own frame.
type Page interface {
	// URI is the URI in the browser, with changes by scripts.
	URI() string
	Title() string
	// Elements is the number of elements.
	Elements() uint64
	// TextLength is the length of the visible text in UTF-16 code units.
	TextLength() uint64
	// ScrollHeight is the height of the document.
	ScrollHeight() uint64
	// ScrollTop is the height of the part above the window.
	ScrollTop() uint64
	WindowHeight() uint64
	// Count returns the number of elements that match a selector of the last plan's Count. It returns false if the selector
	// is invalid, and if the last plan did not name it.
	Count(selector string) (uint64, bool)
	// Results returns the results of the last step's actions, in the same order. It is empty at the first step.
	Results() []ActionResult
	RequestsInFlight() uint32
	// TimeUsed is the time since the page was opened.
	TimeUsed() time.Duration
	// TimeLeft is the time until the host ends the behaviours.
	TimeLeft() time.Duration
	// Step is the number of this step; 0 is the one after loading.
	Step() uint32
	// StepsLeft is the number of steps that may follow this one.
	StepsLeft() uint32
}

// Queue is a queue to rank.
type Queue interface {
	Name() string
	// Queued is the number of queued URIs.
	Queued() uint64
	// Succeeded is the number of successful fetches. Revisits are not counted again.
	Succeeded() uint64
	// Failed is the number of failed fetches.
	Failed() uint64
	// Bytes is the number of fetched bytes.
	Bytes() uint64
	// Best is the precedence of the best queued URI. It is 0 if no URI is queued.
	Best() uint8
	// Base is the precedence of the queue in the profile.
	Base() uint8
	// Now is the time of this call.
	Now() time.Time
}
