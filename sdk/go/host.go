package opilio

import "time"

// Document is a response, or a fragment of one.
type Document interface {
	URI() string
	// Base is the URI that relative references resolve against.
	Base() string
	Status() int
	Headers() []Header
	// Header returns all values of one header, in order.
	Header(name string) []string
	MediaType() string
	// Charset is empty if the content is not text.
	Charset() string
	// Fragment is the context of a fragment; false for a whole document.
	Fragment() (string, bool)
	Length() uint64
	// Read returns fewer bytes at the end of the content, and none past it.
	Read(offset uint64, length uint32) []byte
	Text() string
	Note(name string) (string, bool)
	SetNote(name, value string)
	Annotate(annotation string)
	// Attribute returns a value that the plugin keeps with the URI.
	Attribute(name string) (Kept, bool)
	SetAttribute(name, value string)
	// SiteValue returns a value that the plugin keeps with the site.
	SiteValue(name string) (Kept, bool)
	SetSiteValue(name, value string)
}

// Candidate is a URI that may become part of the crawl, or is one already. Values are copied when a method asks for them.
type Candidate interface {
	URI() string
	SURT() string
	HopPath() string
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
	Now() time.Time
	Status() int
	MediaType() string
	State() State
	// Size is negative if no body was fetched.
	Size() int64
	// LastWait is the wait before this visit; false at the first visit.
	LastWait() (time.Duration, bool)
	Overdue() time.Duration
	Visits() uint64
	Versions() uint64
	// History begins with the newest visit.
	History() []PastVisit
	Validator(name string) (string, bool)
	Outlinks() uint64
	Inlinks() uint64
	Signals() []Signal
	Neighbourhood() []Neighbourhood
	Measure(name string) (float64, bool)
	Note(name string) (string, bool)
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
	ScrollHeight() uint64
	ScrollTop() uint64
	WindowHeight() uint64
	// Count returns the number of elements that match a selector of the last plan's Count. It returns false if the selector
	// is invalid, and if the last plan did not name it.
	Count(selector string) (uint64, bool)
	// Results are those of the last step's actions, in the same order; empty at the first step.
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
	Queued() uint64
	Succeeded() uint64
	Failed() uint64
	Bytes() uint64
	// Best is 0 if no URI is queued.
	Best() uint8
	Base() uint8
	Now() time.Time
}
