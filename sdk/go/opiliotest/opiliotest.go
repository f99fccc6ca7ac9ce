// Package opiliotest has documents, candidates, visits and pages for native tests of plugins. CheckCases runs their cases.
package opiliotest

import (
	"strings"
	"time"

	opilio "github.com/opilio/opilio/sdk/go"
)

// Document is a response with this content. After a call, Notes, Annotations, Attributes and SiteValues have the values that
// the plugin set.
type Document struct {
	DocumentURI, DocumentBase string
	HTTPStatus                int
	Fields                    []opilio.Header
	Type                      string
	Encoding                  string
	FragmentContext           string
	Content                   string
	// Decoded is the result of Text. Empty: the content, decoded as UTF-8.
	Decoded                string
	Notes                  map[string]string
	Annotations            []string
	Attributes, SiteValues map[string]opilio.Kept
}

// Page returns an HTML page in UTF-8 with status 200.
func Page(uri, content string) *Document {
	return &Document{DocumentURI: uri, HTTPStatus: 200, Type: "text/html", Encoding: "utf-8", Content: content}
}

func (d *Document) URI() string { return d.DocumentURI }

func (d *Document) Base() string {
	if d.DocumentBase == "" {
		return d.DocumentURI
	}
	return d.DocumentBase
}

func (d *Document) Status() int { return d.HTTPStatus }

func (d *Document) Headers() []opilio.Header { return d.Fields }

func (d *Document) Header(name string) []string {
	var values []string
	for _, field := range d.Fields {
		if strings.EqualFold(field.Name, name) {
			values = append(values, field.Value)
		}
	}
	return values
}

func (d *Document) MediaType() string { return d.Type }

func (d *Document) Charset() string { return d.Encoding }

func (d *Document) Fragment() (string, bool) { return d.FragmentContext, d.FragmentContext != "" }

func (d *Document) Length() uint64 { return uint64(len(d.Content)) }

func (d *Document) Read(offset uint64, length uint32) []byte {
	if offset >= uint64(len(d.Content)) {
		return nil
	}
	rest := d.Content[offset:]
	return []byte(rest[:min(len(rest), int(length))])
}

func (d *Document) Text() string {
	if d.Decoded != "" {
		return d.Decoded
	}
	return strings.ToValidUTF8(d.Content, "\uFFFD")
}

func (d *Document) Note(name string) (string, bool) {
	value, ok := d.Notes[name]
	return value, ok
}

func (d *Document) SetNote(name, value string) { d.Notes = with(d.Notes, name, value) }

func (d *Document) Annotate(annotation string) { d.Annotations = append(d.Annotations, annotation) }

func (d *Document) Attribute(name string) (opilio.Kept, bool) {
	value, ok := d.Attributes[name]
	return value, ok
}

func (d *Document) SetAttribute(name, value string) {
	d.Attributes = with(d.Attributes, name, opilio.Kept{Value: value})
}

func (d *Document) SiteValue(name string) (opilio.Kept, bool) {
	value, ok := d.SiteValues[name]
	return value, ok
}

func (d *Document) SetSiteValue(name, value string) {
	d.SiteValues = with(d.SiteValues, name, opilio.Kept{Value: value})
}

// Candidate is a candidate with these values. Found is the URI, Path the hop path, Where the context, From the via, and Seeds
// the source.
type Candidate struct {
	Found, Surt, Path, Where, From, FromSurt, Seeds, IP string
	IsSeed                                              bool
	Named                                               []opilio.NamedValue
	// Tables are the names of host tables that have a row for the candidate.
	Tables []string
}

func (c Candidate) URI() string                     { return c.Found }
func (c Candidate) SURT() string                    { return c.Surt }
func (c Candidate) HopPath() string                 { return c.Path }
func (c Candidate) Context() string                 { return c.Where }
func (c Candidate) Via() string                     { return c.From }
func (c Candidate) ViaSURT() string                 { return c.FromSurt }
func (c Candidate) Source() string                  { return c.Seeds }
func (c Candidate) Address() string                 { return c.IP }
func (c Candidate) Seed() bool                      { return c.IsSeed }
func (c Candidate) Attributes() []opilio.NamedValue { return c.Named }

func (c Candidate) IsInTable(table string) bool {
	for _, one := range c.Tables {
		if one == table {
			return true
		}
	}
	return false
}

// Visit is a visit with these values. Of is the candidate, Wait the wait before this visit, Late the time overdue, Count the
// number of visits, Changed the number of versions, Past the history, News the signals, and Around the neighbourhood. The
// zero value is a first visit.
type Visit struct {
	Of                     Candidate
	At                     time.Time
	HTTPStatus             int
	Type                   string
	ContentState           opilio.State
	Bytes                  int64
	Wait, Late             time.Duration
	Count, Changed         uint64
	Past                   []opilio.PastVisit
	Validators             map[string]string
	LinksOut, LinksIn      uint64
	News                   []opilio.Signal
	Around                 []opilio.Neighbourhood
	Measures               map[string]float64
	Notes                  map[string]string
	Attributes, SiteValues map[string]opilio.Kept
}

func (v *Visit) Candidate() opilio.Candidate           { return v.Of }
func (v *Visit) Now() time.Time                        { return v.At }
func (v *Visit) Status() int                           { return v.HTTPStatus }
func (v *Visit) MediaType() string                     { return v.Type }
func (v *Visit) State() opilio.State                   { return v.ContentState }
func (v *Visit) Size() int64                           { return v.Bytes }
func (v *Visit) LastWait() (time.Duration, bool)       { return v.Wait, v.Wait != 0 }
func (v *Visit) Overdue() time.Duration                { return v.Late }
func (v *Visit) Visits() uint64                        { return v.Count }
func (v *Visit) Versions() uint64                      { return v.Changed }
func (v *Visit) History() []opilio.PastVisit           { return v.Past }
func (v *Visit) Outlinks() uint64                      { return v.LinksOut }
func (v *Visit) Inlinks() uint64                       { return v.LinksIn }
func (v *Visit) Signals() []opilio.Signal              { return v.News }
func (v *Visit) Neighbourhood() []opilio.Neighbourhood { return v.Around }
func (v *Visit) SetAttribute(name, value string) {
	v.Attributes = with(v.Attributes, name, opilio.Kept{Value: value})
}
func (v *Visit) SetSiteValue(name, value string) {
	v.SiteValues = with(v.SiteValues, name, opilio.Kept{Value: value})
}
func (v *Visit) Validator(name string) (string, bool) {
	value, ok := v.Validators[name]
	return value, ok
}
func (v *Visit) Measure(name string) (float64, bool) { value, ok := v.Measures[name]; return value, ok }
func (v *Visit) Note(name string) (string, bool)     { value, ok := v.Notes[name]; return value, ok }
func (v *Visit) Attribute(name string) (opilio.Kept, bool) {
	value, ok := v.Attributes[name]
	return value, ok
}
func (v *Visit) SiteValue(name string) (opilio.Kept, bool) {
	value, ok := v.SiteValues[name]
	return value, ok
}

// BrowserPage is a page in a browser with these values. Top is the scroll position, Window the height of the window, Number
// the number of the step, and Used and Left are the time used and left.
type BrowserPage struct {
	PageURI, PageTitle            string
	ElementCount, TextUnits       uint64
	Height, Top, Window           uint64
	Counts                        map[string]uint64
	ActionResults                 []opilio.ActionResult
	Requests, Number, StepsToCome uint32
	Used, Left                    time.Duration
}

// NewBrowserPage returns an empty page in a window of 800 pixels, with a minute and 50 steps left.
func NewBrowserPage(uri string) *BrowserPage {
	return &BrowserPage{PageURI: uri, Window: 800, StepsToCome: 50, Left: time.Minute}
}

func (p *BrowserPage) URI() string                    { return p.PageURI }
func (p *BrowserPage) Title() string                  { return p.PageTitle }
func (p *BrowserPage) Elements() uint64               { return p.ElementCount }
func (p *BrowserPage) TextLength() uint64             { return p.TextUnits }
func (p *BrowserPage) ScrollHeight() uint64           { return p.Height }
func (p *BrowserPage) ScrollTop() uint64              { return p.Top }
func (p *BrowserPage) WindowHeight() uint64           { return p.Window }
func (p *BrowserPage) Results() []opilio.ActionResult { return p.ActionResults }
func (p *BrowserPage) RequestsInFlight() uint32       { return p.Requests }
func (p *BrowserPage) TimeUsed() time.Duration        { return p.Used }
func (p *BrowserPage) TimeLeft() time.Duration        { return p.Left }
func (p *BrowserPage) Step() uint32                   { return p.Number }
func (p *BrowserPage) StepsLeft() uint32              { return p.StepsToCome }
func (p *BrowserPage) Count(selector string) (uint64, bool) {
	count, ok := p.Counts[selector]
	return count, ok
}

func with[T any](values map[string]T, name string, value T) map[string]T {
	if values == nil {
		values = map[string]T{}
	}
	values[name] = value
	return values
}
