// Package opilio is for plugins in Go: a type with settings, a method or two, one Export line. README.md has a whole one.
package opilio

import "time"

// About is who a plugin is.
type About struct {
	// Name has lower-case words joined by hyphens.
	Name string
	// Version is semantic.
	Version string
	// Summary is one sentence for the operator.
	Summary string
	// MediaTypes and URIs (regular expressions) are what it wants to be asked about; empty for anything.
	MediaTypes []string
	URIs       []string
	// Keeps declares values that it keeps from visit to visit.
	Keeps []Keep
}

// Keep is a value that a plugin keeps with URIs, or with sites.
type Keep struct {
	Name     string
	WithSite bool
	// Version of the value's form, which comes back with it.
	Version uint32
}

// Fault is one thing that is wrong with the settings.
type Fault struct {
	// Pointer is a JSON Pointer such as "/names/0"; empty for the whole.
	Pointer string
	// Problem is a fragment, lower-case, no full stop.
	Problem string
}

// An Extractor finds links.
type Extractor interface {
	Extract(Document) Extraction
}

// A CandidateFilter says yes or no to URIs that were found, and to documents by the URI they came from.
type CandidateFilter interface {
	JudgeCandidate(Stage, Candidate) Ruling
}

// A DocumentFilter says yes or no to responses.
type DocumentFilter interface {
	JudgeDocument(Stage, Document, Visit) Ruling
}

// A DigestStripper says what does not count as content. An error makes the content state unknown; TooLarge says that
// it was the size.
type DigestStripper interface {
	Strip(Document) ([]Span, error)
}

// A ChangeEvaluator says whether a document has changed. Last is nil at the first visit.
type ChangeEvaluator interface {
	Compare(document Document, visit Visit, last []byte) Comparison
}

// A WaitEvaluator says how long to wait; false leaves it to the next.
type WaitEvaluator interface {
	Evaluate(Visit) (Wait, bool)
}

// A CandidatePrecedence ranks candidates: 1 first, 255 last, 0 leaves it to the next. The document is nil for seeds.
type CandidatePrecedence interface {
	RankCandidate(candidate Candidate, document Document) uint8
}

// A QueuePrecedence ranks queues.
type QueuePrecedence interface {
	RankQueue(Queue) uint8
}

// An Observer is told of finished URIs. Memory is what it answered last.
type Observer interface {
	Observe(memory []byte, events []Finished) Observation
}

// A Reporter is an observer that writes reports.
type Reporter interface {
	Report(memory []byte, now time.Time) []Report
}

// Export makes a plugin of the component: who it is, the defaults of its settings, and what it becomes with settings. It is
// of every kind whose methods *P has. Call it in init; several times for several plugins.
func Export[S, P any](about About, defaults S, become func(S) (*P, []Fault)) {
	exported = append(exported, newEntry(about, defaults, become))
}

type kind uint8

// In the order of the contract.
const (
	extractor kind = iota
	filter
	digestStripper
	changeEvaluator
	waitEvaluator
	precedence
	observer
)

// A plugin of this component.
type entry struct {
	about     About
	kinds     []kind
	schema    string
	configure func(settings string) (any, []Fault)
}

var exported []entry

func newEntry[S, P any](about About, defaults S, become func(S) (*P, []Fault)) entry {
	return entry{
		about:  about,
		kinds:  kindsOf((*P)(nil)),
		schema: schemaOf(defaults),
		configure: func(text string) (any, []Fault) {
			settings, faults := read(text, defaults)
			if len(faults) > 0 {
				return nil, faults
			}
			plugin, faults := become(settings)
			return plugin, faults
		},
	}
}

func kindsOf(plugin any) []kind {
	var kinds []kind
	is := func(of kind, yes ...bool) {
		for _, one := range yes {
			if one {
				kinds = append(kinds, of)
				return
			}
		}
	}
	_, extracts := plugin.(Extractor)
	_, judgesCandidates := plugin.(CandidateFilter)
	_, judgesDocuments := plugin.(DocumentFilter)
	_, strips := plugin.(DigestStripper)
	_, compares := plugin.(ChangeEvaluator)
	_, evaluates := plugin.(WaitEvaluator)
	_, ranksCandidates := plugin.(CandidatePrecedence)
	_, ranksQueues := plugin.(QueuePrecedence)
	_, observes := plugin.(Observer)
	is(extractor, extracts)
	is(filter, judgesCandidates, judgesDocuments)
	is(digestStripper, strips)
	is(changeEvaluator, compares)
	is(waitEvaluator, evaluates)
	is(precedence, ranksCandidates, ranksQueues)
	is(observer, observes)
	return kinds
}
