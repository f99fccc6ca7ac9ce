package opilio

import (
	"strings"
	"time"

	"github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_counters"
	documents "github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_documents"
	"github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_log"
	observers "github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_observer"
	"github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_tables"
	types "github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_types"
	"github.com/opilio/opilio/sdk/go/internal/wit"
)

func writeLog(level uint8, line string) { opilio_plugin_log.Write(level, line) }

func addToCounter(name string, n uint64) { opilio_plugin_counters.Count(name, n) }

func find(table, key string) (Row, bool) {
	row, ok := opilio_plugin_tables.Find(table, key).Get()
	return Row{Key: row.Key, Value: row.Value}, ok
}

func instant(at uint64) time.Time { return time.UnixMilli(int64(at)).UTC() }

func duration(of uint64) time.Duration {
	// Durations that Go cannot express become its longest one.
	if of > uint64(1<<63-1)/uint64(time.Millisecond) {
		return 1<<63 - 1
	}
	return time.Duration(of) * time.Millisecond
}

func size(of wit.Option[uint64]) int64 {
	if size, ok := of.Get(); ok {
		return int64(size)
	}
	return -1
}

func orEmpty(of wit.Option[string]) string {
	text, _ := of.Get()
	return text
}

func timeOrZero(of wit.Option[uint64]) time.Time {
	if at, ok := of.Get(); ok {
		return instant(at)
	}
	return time.Time{}
}

func kept(of wit.Option[types.KeptValue]) (Kept, bool) {
	value, ok := of.Get()
	return Kept{Version: value.Version, Value: value.Value}, ok
}

func named(of []types.NamedValue) []NamedValue {
	result := make([]NamedValue, 0, len(of))
	for _, one := range of {
		result = append(result, NamedValue{one.Name, one.Value})
	}
	return result
}

type hostDocument struct{ *documents.Document }

func (d hostDocument) URI() string { return d.Uri() }

func (d hostDocument) Status() int { return int(d.Document.Status()) }

func (d hostDocument) Headers() []Header {
	var result []Header
	for _, one := range d.Document.Headers() {
		result = append(result, Header{one.Name, one.Value})
	}
	return result
}

func (d hostDocument) Charset() string { return orEmpty(d.Document.Charset()) }

func (d hostDocument) Fragment() (string, bool) { return d.Document.Fragment().Get() }

func (d hostDocument) Note(name string) (string, bool) { return d.Document.Note(name).Get() }

func (d hostDocument) Attribute(name string) (Kept, bool) { return kept(d.Document.Attribute(name)) }

func (d hostDocument) SiteValue(name string) (Kept, bool) { return kept(d.Document.SiteValue(name)) }

type hostQueue struct{ *documents.Queue }

func (q hostQueue) Best() uint8 {
	best, _ := q.Queue.Best().Get()
	return best
}

func (q hostQueue) Now() time.Time { return instant(q.Queue.Now()) }

type hostPage struct{ *documents.Page }

func (p hostPage) URI() string { return p.Uri() }

func (p hostPage) Count(selector string) (uint64, bool) { return p.Page.Count(selector).Get() }

func (p hostPage) Results() []ActionResult {
	var result []ActionResult
	for _, one := range p.Page.Results() {
		result = append(result, actionResult(one))
	}
	return result
}

func (p hostPage) TimeUsed() time.Duration { return duration(p.Page.TimeUsed()) }

func (p hostPage) TimeLeft() time.Duration { return duration(p.Page.TimeLeft()) }

func actionResult(of documents.ActionResult) ActionResult {
	result := ActionResult{Kind: ResultKind(of.Tag())}
	switch result.Kind {
	case ResultClicked:
		result.Clicked = of.Clicked()
	case ResultValue:
		result.Text = of.Value()
	case ResultInvalid:
		result.Text = of.Invalid()
	case ResultException:
		result.Text = of.Exception()
	case ResultRefused:
		result.Text = of.Refused()
	case OtherResult:
		result.Text = of.Other()
	}
	return result
}

type hostVisit struct{ *documents.Visit }

func (v hostVisit) Candidate() Candidate { return wholeCandidate{v.Visit.Candidate()} }

func (v hostVisit) Now() time.Time { return instant(v.Visit.Now()) }

func (v hostVisit) Status() int { return int(v.Visit.Status()) }

func (v hostVisit) State() State { return State(v.Visit.State()) }

func (v hostVisit) Size() int64 { return size(v.Visit.Size()) }

func (v hostVisit) LastWait() (time.Duration, bool) {
	wait, ok := v.Visit.LastWait().Get()
	return duration(wait), ok
}

func (v hostVisit) Overdue() time.Duration { return duration(v.Visit.Overdue()) }

func (v hostVisit) History() []PastVisit {
	var result []PastVisit
	for _, one := range v.Visit.History() {
		result = append(result, PastVisit{instant(one.At), int(one.Status), State(one.State), size(one.Size)})
	}
	return result
}

func (v hostVisit) Validator(name string) (string, bool) { return v.Visit.Validator(name).Get() }

func (v hostVisit) Signals() []Signal {
	var result []Signal
	for _, one := range v.Visit.Signals() {
		result = append(result, Signal{instant(one.At), one.Source, timeOrZero(one.Modified)})
	}
	return result
}

func (v hostVisit) Neighbourhood() []Neighbourhood {
	var result []Neighbourhood
	for _, one := range v.Visit.Neighbourhood() {
		result = append(result, Neighbourhood{one.Shares, one.Documents, one.Visits, one.Changes, duration(one.Observed)})
	}
	return result
}

func (v hostVisit) Measure(name string) (float64, bool) { return v.Visit.Measure(name).Get() }

func (v hostVisit) Note(name string) (string, bool) { return v.Visit.Note(name).Get() }

func (v hostVisit) Attribute(name string) (Kept, bool) { return kept(v.Visit.Attribute(name)) }

func (v hostVisit) SiteValue(name string) (Kept, bool) { return kept(v.Visit.SiteValue(name)) }

// wholeCandidate is a candidate that the host returned with all its fields.
type wholeCandidate struct{ of types.Candidate }

func (c wholeCandidate) URI() string              { return c.of.Uri }
func (c wholeCandidate) SURT() string             { return c.of.Surt }
func (c wholeCandidate) HopPath() string          { return c.of.HopPath }
func (c wholeCandidate) Context() string          { return c.of.Context }
func (c wholeCandidate) Via() string              { return orEmpty(c.of.Via) }
func (c wholeCandidate) ViaSURT() string          { return orEmpty(c.of.ViaSurt) }
func (c wholeCandidate) Source() string           { return orEmpty(c.of.Source) }
func (c wholeCandidate) Address() string          { return orEmpty(c.of.Address) }
func (c wholeCandidate) Seed() bool               { return c.of.Seed }
func (c wholeCandidate) Attributes() []NamedValue { return named(c.of.Attributes) }

// IsInTable looks up the URI or the SURT form, depending on the kind of the table.
func (c wholeCandidate) IsInTable(table string) bool {
	kind, ok := opilio_plugin_tables.KindOf(table).Get()
	if !ok {
		return false
	}
	key := c.URI()
	if kind.Tag() == opilio_plugin_tables.Kind_SurtPrefixes {
		key = c.SURT()
	}
	_, ok = find(table, key)
	return ok
}

// columns are the candidates of one call. When the plugin first reads a field, the host returns the whole column.
type columns struct {
	host   *documents.Candidates
	texts  [8][]string
	seeds  []bool
	tables map[string][]bool
}

// columnCandidate is one candidate in columns.
type columnCandidate struct {
	of *columns
	at int
}

func candidates(host *documents.Candidates) []columnCandidate {
	of := &columns{host: host}
	result := make([]columnCandidate, host.Length())
	for n := range result {
		result[n] = columnCandidate{of, n}
	}
	return result
}

func (c columnCandidate) text(column int, get func() string) string {
	if c.of.texts[column] == nil {
		c.of.texts[column] = strings.Split(get(), "\n")
	}
	return c.of.texts[column][c.at]
}

func (c columnCandidate) URI() string     { return c.text(0, c.of.host.Uris) }
func (c columnCandidate) SURT() string    { return c.text(1, c.of.host.Surts) }
func (c columnCandidate) HopPath() string { return c.text(2, c.of.host.HopPaths) }
func (c columnCandidate) Context() string { return c.text(3, c.of.host.Contexts) }
func (c columnCandidate) Via() string     { return c.text(4, c.of.host.Vias) }
func (c columnCandidate) ViaSURT() string { return c.text(5, c.of.host.ViaSurts) }
func (c columnCandidate) Source() string  { return c.text(6, c.of.host.Sources) }
func (c columnCandidate) Address() string { return c.text(7, c.of.host.Addresses) }

func (c columnCandidate) Seed() bool {
	if c.of.seeds == nil {
		c.of.seeds = c.of.host.Seeds()
	}
	return c.of.seeds[c.at]
}

func (c columnCandidate) Attributes() []NamedValue {
	return named(c.of.host.Get(uint32(c.at)).Attributes)
}

func (c columnCandidate) IsInTable(table string) bool {
	if c.of.tables == nil {
		c.of.tables = map[string][]bool{}
	}
	if c.of.tables[table] == nil {
		c.of.tables[table] = opilio_plugin_tables.FindCandidates(table, c.of.host)
	}
	return c.of.tables[table][c.at]
}

func finished(of observers.Finished) Finished {
	took, _ := of.Took.Get()
	return Finished{
		At:          instant(of.At),
		URI:         of.Uri,
		Status:      int(of.Status),
		MediaType:   of.MediaType,
		Size:        size(of.Size),
		Took:        duration(took),
		State:       State(of.State),
		HopPath:     of.HopPath,
		Via:         orEmpty(of.Via),
		Source:      orEmpty(of.Source),
		Queue:       of.Queue,
		Digest:      orEmpty(of.Digest),
		Annotations: of.Annotations,
		Attributes:  named(of.Attributes),
	}
}
