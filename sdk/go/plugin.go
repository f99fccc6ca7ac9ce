// Package opilio is the SDK for plugins in Go. A plugin is a struct of settings, a type with a method for each kind, and a
// call of Export. README.md has a complete example.
package opilio

import (
	"slices"
	"time"
)

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
	// Version is the version of the value's format. The host returns it with the value.
	Version uint32
}

// Fault is one error in the settings.
type Fault struct {
	// Pointer is a JSON Pointer to the setting, such as "/names/0". Empty: the settings as a whole.
	Pointer string
	// Problem describes the error: a lower-case phrase without a full stop.
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

// A DigestStripper returns the spans that do not count as content. If it returns an error, the host compares the payload
// digest: the same bytes are unchanged, other bytes count as changed. TooLarge is the error for documents that are too large.
type DigestStripper interface {
	Strip(Document) ([]Span, error)
}

// A ChangeEvaluator decides whether a document has changed. The argument last is the Fingerprint of the last archived version.
// It is nil at the first visit, and if another plugin or other settings made it.
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

// An Observer receives finished URIs. The argument memory is the Memory of its last Observation; empty at the first call.
type Observer interface {
	Observe(memory []byte, events []Finished) Observation
}

// A Reporter is an observer that writes reports. The argument memory is the Memory of its last Observation.
type Reporter interface {
	Report(memory []byte, now time.Time) []Report
}

// A PageBehavior operates pages in a browser. The argument memory is the Memory of its last StepPlan on the page; empty at
// the first step.
type PageBehavior interface {
	Step(page Page, visit Visit, memory []byte) StepPlan
}

// Export adds a plugin to the component: its description, the defaults of its settings, and a function that returns the
// configured plugin, or the faults in the settings. The methods of *P determine its kinds. Call Export in init, once for each
// plugin.
func Export[S, P any](about About, defaults S, newPlugin func(S) (*P, []Fault)) {
	exported = append(exported, newEntry(about, defaults, newPlugin))
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

// entry is an exported plugin.
type entry struct {
	about     About
	kinds     []kind
	schema    string
	configure func(settings string) (any, []Fault)
}

var exported []entry

func newEntry[S, P any](about About, defaults S, newPlugin func(S) (*P, []Fault)) entry {
	return entry{
		about:  about,
		kinds:  kindsOf((*P)(nil)),
		schema: schemaOf(defaults),
		configure: func(text string) (any, []Fault) {
			settings, faults := readSettings(text, defaults)
			if len(faults) > 0 {
				return nil, faults
			}
			plugin, faults := newPlugin(settings)
			return plugin, faults
		},
	}
}

func kindsOf(plugin any) []kind {
	var kinds []kind
	addIfAny := func(kind kind, methods ...bool) {
		if slices.Contains(methods, true) {
			kinds = append(kinds, kind)
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
	addIfAny(extractor, extracts)
	addIfAny(filter, judgesCandidates, judgesDocuments)
	addIfAny(digestStripper, strips)
	addIfAny(changeEvaluator, compares)
	addIfAny(waitEvaluator, evaluates)
	addIfAny(precedence, ranksCandidates, ranksQueues)
	addIfAny(observer, observes)
	addIfAny(pageBehavior, operatesPages)
	return kinds
}
