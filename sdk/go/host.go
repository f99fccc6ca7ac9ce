package opilio

import "time"

// Document is a response, or a fragment of one.
type Document interface {
	URI() string
	// Base is what relative references resolve against.
	Base() string
	Status() int
	Headers() []Header
	// Header has all values of one, in order.
	Header(name string) []string
	MediaType() string
	// Charset is empty for what is not text.
	Charset() string
	// Fragment is where a fragment stood; false for a whole document.
	Fragment() (string, bool)
	Length() uint64
	// Read is shorter at the end of the content, and empty past it.
	Read(offset uint64, length uint32) []byte
	Text() string
	Note(name string) (string, bool)
	SetNote(name, value string)
	Annotate(annotation string)
	// Attribute is what the plugin keeps with the URI.
	Attribute(name string) (Kept, bool)
	SetAttribute(name, value string)
	// SiteValue is what it keeps with the site.
	SiteValue(name string) (Kept, bool)
	SetSiteValue(name, value string)
}

// Candidate is a URI that may become part of the crawl, or has. What is not asked for costs nothing.
type Candidate interface {
	URI() string
	SURT() string
	HopPath() string
	Context() string
	// Via and the next three are empty where there is none.
	Via() string
	ViaSURT() string
	Source() string
	Address() string
	Seed() bool
	Attributes() []NamedValue
	// IsInTable looks it up in a table of the host's.
	IsInTable(table string) bool
}

// Visit is a URI's standing in the crawl.
type Visit interface {
	Candidate() Candidate
	Now() time.Time
	Status() int
	MediaType() string
	State() State
	// Size is negative where no body was fetched.
	Size() int64
	// LastWait is the wait that led to this visit; false at the first.
	LastWait() (time.Duration, bool)
	Overdue() time.Duration
	Visits() uint64
	Versions() uint64
	// History has the newest visit first.
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

// Queue is one that is to be ranked.
type Queue interface {
	Name() string
	Queued() uint64
	Succeeded() uint64
	Failed() uint64
	Bytes() uint64
	// Best is 0 where nothing waits.
	Best() uint8
	Base() uint8
	Now() time.Time
}
