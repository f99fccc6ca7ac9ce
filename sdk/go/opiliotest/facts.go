package opiliotest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	opilio "github.com/opilio/opilio/sdk/go"
)

// byteList is a list of bytes, written as numbers in a case. encoding/json would expect base64.
type byteList []byte

func (o *byteList) UnmarshalJSON(text []byte) error {
	var numbers []uint16
	if err := json.Unmarshal(text, &numbers); err != nil || numbers == nil {
		return err
	}
	*o = make(byteList, 0, len(numbers))
	for _, number := range numbers {
		if number > 255 {
			return fmt.Errorf("%d is not a byte", number)
		}
		*o = append(*o, byte(number))
	}
	return nil
}

type namedValue struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type keptValue struct {
	Version uint32 `json:"version"`
	Value   string `json:"value"`
}

type keptFacts struct {
	URI  map[string]keptValue `json:"uri"`
	Site map[string]keptValue `json:"site"`
}

// documentFacts is a document of a case. Every field is optional.
type documentFacts struct {
	URI       *string      `json:"uri"`
	Base      string       `json:"base"`
	Status    *int         `json:"status"`
	Headers   []namedValue `json:"headers"`
	MediaType *string      `json:"media-type"`
	Charset   string       `json:"charset"`
	Fragment  string       `json:"fragment"`
	Text      string       `json:"text"`
	Bytes     byteList     `json:"bytes"`
	File      string       `json:"file"`
	Notes     []namedValue `json:"notes"`
	Kept      keptFacts    `json:"kept"`
}

func (f documentFacts) document(folder string) (*Document, error) {
	document := &Document{
		DocumentURI:     valueOr(f.URI, "http://example.com/"),
		DocumentBase:    f.Base,
		HTTPStatus:      valueOr(f.Status, 200),
		Type:            valueOr(f.MediaType, "application/octet-stream"),
		Encoding:        f.Charset,
		FragmentContext: f.Fragment,
		Content:         f.Text,
		Notes:           byName(f.Notes),
		Attributes:      keptValues(f.Kept.URI),
		SiteValues:      keptValues(f.Kept.Site),
	}
	for _, header := range f.Headers {
		document.Fields = append(document.Fields, opilio.Header(header))
	}
	content := []byte(f.Bytes)
	if f.File != "" {
		read, err := os.ReadFile(filepath.Join(folder, f.File))
		if err != nil {
			return nil, err
		}
		content = read
	}
	if content == nil {
		return document, nil
	}
	document.Content = string(content)
	document.Decoded = f.Text
	if f.Text == "" {
		decoded, err := decode(content, f.Charset)
		if err != nil {
			return nil, err
		}
		document.Decoded = decoded
	}
	return document, nil
}

// windows1252 has the characters of windows-1252 from 0x80 to 0x9F. Pages in iso-8859-1 are decoded as windows-1252 (WHATWG
// Encoding Standard).
const windows1252 = "€\u0081‚ƒ„…†‡ˆ‰Š‹Œ\u008dŽ\u008f\u0090‘’“”•–—˜™š›œ\u009džŸ"

func decode(content []byte, charset string) (string, error) {
	switch strings.ToLower(charset) {
	case "", "utf-8":
		return strings.ToValidUTF8(string(content), "\uFFFD"), nil
	case "iso-8859-1", "windows-1252", "us-ascii":
		upper := []rune(windows1252)
		var text strings.Builder
		for _, octet := range content {
			if octet >= 0x80 && octet < 0xA0 {
				text.WriteRune(upper[octet-0x80])
			} else {
				text.WriteRune(rune(octet))
			}
		}
		return text.String(), nil
	}
	return "", fmt.Errorf("native tests cannot decode %s: give `text` next to the bytes, or run this case on the component with opilio plugin test", charset)
}

type candidateFacts struct {
	URI        string       `json:"uri"`
	SURT       string       `json:"surt"`
	HopPath    string       `json:"hop-path"`
	Context    string       `json:"context"`
	Via        string       `json:"via"`
	ViaSURT    string       `json:"via-surt"`
	Source     string       `json:"source"`
	Address    string       `json:"address"`
	Seed       bool         `json:"seed"`
	Attributes []namedValue `json:"attributes"`
}

func (f candidateFacts) candidate() Candidate {
	candidate := Candidate{
		Found: f.URI, Surt: f.SURT, Path: f.HopPath, Where: f.Context, From: f.Via, FromSurt: f.ViaSURT, Seeds: f.Source,
		IP: f.Address, IsSeed: f.Seed,
	}
	for _, one := range f.Attributes {
		candidate.Named = append(candidate.Named, opilio.NamedValue(one))
	}
	for name, table := range opilio.TestTables {
		key := f.URI
		if table.Kind == "surt-prefixes" {
			key = f.SURT
		}
		if _, ok := table.Find(key); ok {
			candidate.Tables = append(candidate.Tables, name)
		}
	}
	return candidate
}

// visitFacts is a visit of a case. Times and durations are milliseconds.
type visitFacts struct {
	Candidate candidateFacts `json:"candidate"`
	Now       uint64         `json:"now"`
	Status    int            `json:"status"`
	MediaType string         `json:"media-type"`
	State     string         `json:"state"`
	Size      *int64         `json:"size"`
	LastWait  uint64         `json:"last-wait"`
	Overdue   uint64         `json:"overdue"`
	Visits    uint64         `json:"visits"`
	Versions  uint64         `json:"versions"`
	History   []struct {
		At     uint64 `json:"at"`
		Status int    `json:"status"`
		State  string `json:"state"`
		Size   *int64 `json:"size"`
	} `json:"history"`
	Validators []namedValue `json:"validators"`
	Outlinks   uint64       `json:"outlinks"`
	Inlinks    uint64       `json:"inlinks"`
	Signals    []struct {
		At       uint64  `json:"at"`
		Source   string  `json:"source"`
		Modified *uint64 `json:"modified"`
	} `json:"signals"`
	Neighbourhood []struct {
		Shares    string `json:"shares"`
		Documents uint64 `json:"documents"`
		Visits    uint64 `json:"visits"`
		Changes   uint64 `json:"changes"`
		Observed  uint64 `json:"observed"`
	} `json:"neighbourhood"`
	Measures map[string]float64 `json:"measures"`
	Notes    []namedValue       `json:"notes"`
	Kept     keptFacts          `json:"kept"`
}

func (f visitFacts) visit() *Visit {
	visit := &Visit{
		Of: f.Candidate.candidate(), At: instant(f.Now), HTTPStatus: f.Status, Type: f.MediaType, ContentState: state(f.State),
		Bytes: valueOr(f.Size, -1), Wait: milliseconds(f.LastWait), Late: milliseconds(f.Overdue), Count: f.Visits, Changed: f.Versions,
		Validators: byName(f.Validators), LinksOut: f.Outlinks, LinksIn: f.Inlinks, Measures: f.Measures, Notes: byName(f.Notes),
		Attributes: keptValues(f.Kept.URI), SiteValues: keptValues(f.Kept.Site),
	}
	for _, one := range f.History {
		visit.Past = append(visit.Past, opilio.PastVisit{
			At: instant(one.At), Status: one.Status, State: state(one.State), Size: valueOr(one.Size, -1),
		})
	}
	for _, one := range f.Signals {
		signal := opilio.Signal{At: instant(one.At), Source: one.Source}
		if one.Modified != nil {
			signal.Modified = instant(*one.Modified)
		}
		visit.News = append(visit.News, signal)
	}
	for _, one := range f.Neighbourhood {
		visit.Around = append(visit.Around, opilio.Neighbourhood{
			Shares: one.Shares, Documents: one.Documents, Visits: one.Visits, Changes: one.Changes, Observed: milliseconds(one.Observed),
		})
	}
	return visit
}

// pageFacts is a page in a browser, as a case describes it.
type pageFacts struct {
	URI              *string           `json:"uri"`
	Title            string            `json:"title"`
	Elements         uint64            `json:"elements"`
	TextLength       uint64            `json:"text-length"`
	ScrollHeight     uint64            `json:"scroll-height"`
	ScrollTop        uint64            `json:"scroll-top"`
	WindowHeight     *uint64           `json:"window-height"`
	Counts           map[string]uint64 `json:"counts"`
	Results          []resultFacts     `json:"results"`
	RequestsInFlight uint32            `json:"requests-in-flight"`
	TimeUsed         uint64            `json:"time-used"`
	TimeLeft         *uint64           `json:"time-left"`
	Step             uint32            `json:"step"`
	StepsLeft        *uint32           `json:"steps-left"`
}

func (f pageFacts) page() *BrowserPage {
	page := NewBrowserPage(valueOr(f.URI, "http://example.com/"))
	page.PageTitle, page.ElementCount, page.TextUnits = f.Title, f.Elements, f.TextLength
	page.Height, page.Top, page.Window = f.ScrollHeight, f.ScrollTop, valueOr(f.WindowHeight, page.Window)
	page.Counts, page.Requests, page.Number = f.Counts, f.RequestsInFlight, f.Step
	page.Used, page.StepsToCome = milliseconds(f.TimeUsed), valueOr(f.StepsLeft, page.StepsToCome)
	if f.TimeLeft != nil {
		page.Left = milliseconds(*f.TimeLeft)
	}
	for _, one := range f.Results {
		page.ActionResults = append(page.ActionResults, opilio.ActionResult(one))
	}
	return page
}

// resultFacts is the result of an action in a case: a name, or a name with a value.
type resultFacts opilio.ActionResult

func (r *resultFacts) UnmarshalJSON(text []byte) error {
	names := []string{"done", "clicked", "value", "no-element", "not-idle", "invalid", "exception", "refused", "other"}
	var name string
	values := map[string]json.RawMessage{}
	if json.Unmarshal(text, &name) != nil {
		if err := json.Unmarshal(text, &values); err != nil || len(values) != 1 {
			return fmt.Errorf("%s is not a result of an action", text)
		}
		for name = range values {
		}
	}
	kind := slices.Index(names, name)
	if kind < 0 {
		return fmt.Errorf("%q is not a result of an action; write one of %s", name, strings.Join(names, ", "))
	}
	r.Kind = opilio.ResultKind(kind)
	value, ok := values[name]
	switch {
	case !ok:
		return nil
	case r.Kind == opilio.ResultClicked:
		return json.Unmarshal(value, &r.Clicked)
	}
	return json.Unmarshal(value, &r.Text)
}

// queueFacts is a queue of a case. It implements opilio.Queue.
type queueFacts struct {
	Title     string `json:"name"`
	Waiting   uint64 `json:"queued"`
	Successes uint64 `json:"succeeded"`
	Failures  uint64 `json:"failed"`
	Size      uint64 `json:"bytes"`
	BestRank  uint8  `json:"best"`
	BaseRank  uint8  `json:"base"`
	Instant   uint64 `json:"now"`
}

func (f queueFacts) Name() string      { return f.Title }
func (f queueFacts) Queued() uint64    { return f.Waiting }
func (f queueFacts) Succeeded() uint64 { return f.Successes }
func (f queueFacts) Failed() uint64    { return f.Failures }
func (f queueFacts) Bytes() uint64     { return f.Size }
func (f queueFacts) Best() uint8       { return f.BestRank }
func (f queueFacts) Base() uint8       { return f.BaseRank }
func (f queueFacts) Now() time.Time    { return instant(f.Instant) }

type eventFacts struct {
	At          uint64       `json:"at"`
	URI         string       `json:"uri"`
	Status      int          `json:"status"`
	MediaType   string       `json:"media-type"`
	Size        *int64       `json:"size"`
	Took        uint64       `json:"took"`
	State       string       `json:"state"`
	HopPath     string       `json:"hop-path"`
	Via         string       `json:"via"`
	Source      string       `json:"source"`
	Queue       string       `json:"queue"`
	Digest      string       `json:"digest"`
	Annotations []string     `json:"annotations"`
	Attributes  []namedValue `json:"attributes"`
}

func (f eventFacts) event() opilio.Finished {
	event := opilio.Finished{
		At: instant(f.At), URI: f.URI, Status: f.Status, MediaType: f.MediaType, Size: valueOr(f.Size, -1), Took: milliseconds(f.Took),
		State: state(f.State), HopPath: f.HopPath, Via: f.Via, Source: f.Source, Queue: f.Queue, Digest: f.Digest,
		Annotations: f.Annotations,
	}
	for _, one := range f.Attributes {
		event.Attributes = append(event.Attributes, opilio.NamedValue(one))
	}
	return event
}

func valueOr[T any](given *T, otherwise T) T {
	if given == nil {
		return otherwise
	}
	return *given
}

func byName(from []namedValue) map[string]string {
	result := map[string]string{}
	for _, one := range from {
		result[one.Name] = one.Value
	}
	return result
}

func keptValues(from map[string]keptValue) map[string]opilio.Kept {
	result := map[string]opilio.Kept{}
	for name, one := range from {
		result[name] = opilio.Kept(one)
	}
	return result
}

func state(name string) opilio.State {
	switch name {
	case "changed":
		return opilio.ChangedState
	case "unchanged":
		return opilio.UnchangedState
	case "unknown":
		return opilio.UnknownState
	}
	return opilio.NewState
}

func instant(at uint64) time.Time { return time.UnixMilli(int64(at)).UTC() }

func milliseconds(n uint64) time.Duration { return time.Duration(n) * time.Millisecond }
