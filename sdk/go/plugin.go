// Package opilio is the SDK for plugins in Go. A plugin is a struct of settings, a type with a method for each kind, and a
// call of Export. README.md has a complete example.
package opilio

import "time"

// About describes a plugin.
type About struct {
	// Name consists of lower-case words joined by hyphens.
	Name string
	// Version is a semantic version.
	Version string
	// Summary is one sentence for operators.
	Summary string
	// MediaTypes and URIs (regular expressions) select the documents that the plugin is called for. Empty: all.
	MediaTypes []string
	URIs       []string
	// Keeps declares the values that the plugin keeps from visit to visit.
	Keeps []Keep
}

// Keep declares a value that a plugin keeps with URIs, or with sites.
type Keep struct {
	Name     string
	WithSite bool
	// Version of the value's format. The host returns it with the value.
	Version uint32
}

// Fault is one error in the settings.
type Fault struct {
	// Pointer is a JSON Pointer such as "/names/0"; empty for the whole.
	Pointer string
	// Problem is a lower-case fragment without a full stop.
	Problem string
}

// An Extractor finds links.
type Extractor interface {
	Extract(Document) Extraction
}

// A CandidateFilter accepts or rejects links. Without a DocumentFilter it judges documents too, by their URI.
type CandidateFilter interface {
	JudgeCandidate(Stage, Candidate) Ruling
}

// A DocumentFilter accepts or rejects responses.
type DocumentFilter interface {
	JudgeDocument(Stage, Document, Visit) Ruling
}

// A DigestStripper returns the spans that do not count as content. An error makes the content state unknown. TooLarge is
// the error for documents that are too large.
type DigestStripper interface {
	Strip(Document) ([]Span, error)
}

// A ChangeEvaluator decides whether a document has changed. Last is nil at the first visit.
type ChangeEvaluator interface {
	Compare(document Document, visit Visit, last []byte) Comparison
}

// A WaitEvaluator returns the wait until the next visit. False leaves the answer to the next evaluator.
type WaitEvaluator interface {
	Evaluate(Visit) (Wait, bool)
}

// A CandidatePrecedence ranks links from 1 (first) to 255 (last). 0 leaves the answer to the next plugin. The document is
// nil for seeds.
type CandidatePrecedence interface {
	RankCandidate(candidate Candidate, document Document) uint8
}

// A QueuePrecedence ranks queues.
type QueuePrecedence interface {
	RankQueue(Queue) uint8
}

// An Observer receives finished URIs. Memory is that of its last Observation.
type Observer interface {
	Observe(memory []byte, events []Finished) Observation
}

// A Reporter is an observer that writes reports.
type Reporter interface {
	Report(memory []byte, now time.Time) []Report
}

// A PageBehavior operates pages in a browser. Memory is that of its last StepPlan on the page; empty at the first step.
type PageBehavior interface {
	Step(page Page, visit Visit, memory []byte) StepPlan
}

// Export adds a plugin to the component: its description, the defaults of its settings, and a function that makes the
// configured plugin. The methods of *P determine its kinds. Call Export in init, once for each plugin.
func Export[S, P any](about About, defaults S, become func(S) (*P, []Fault)) {
	exported = append(exported, newEntry(about, defaults, become))
}

type kind uint8

// Kinds in the order of the contract.
const (
	extractor kind = iota
	filter
	digestStripper
	changeEvaluator
	waitEvaluator
	precedence
	observer
	pageBehavior
)

// An exported plugin.
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
	_, operatesPages := plugin.(PageBehavior)
	is(extractor, extracts)
	is(filter, judgesCandidates, judgesDocuments)
	is(digestStripper, strips)
	is(changeEvaluator, compares)
	is(waitEvaluator, evaluates)
	is(precedence, ranksCandidates, ranksQueues)
	is(observer, observes)
	is(pageBehavior, operatesPages)
	return kinds
}
