package opiliotest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	opilio "github.com/opilio/opilio/sdk/go"
)

// headline is a copy of the Rust SDK's test plugin. It compares the first lines of documents, takes ranks from a table, counts events, and plans
// every action on a page.
type headline struct{}

func (*headline) Compare(document opilio.Document, visit opilio.Visit, last []byte) opilio.Comparison {
	first, _, _ := strings.Cut(document.Text(), "\n")
	document.SetAttribute("headline", first)
	visit.SetSiteValue("last-headline", first)
	out := opilio.Comparison{Fingerprint: []byte(first)}
	switch {
	case last == nil:
	case string(last) == first:
		out.Difference, out.Reason = opilio.Same, "the same headline"
	default:
		out.Difference, out.Reason = opilio.Differs, "another headline"
	}
	return out
}

func (*headline) RankCandidate(candidate opilio.Candidate, document opilio.Document) uint8 {
	switch {
	case candidate.Seed():
		return 1
	case candidate.IsInTable("first"):
		row, _ := opilio.Find("first", candidate.SURT())
		rank, _ := strconv.Atoi(row.Value)
		return uint8(rank)
	case document != nil:
		return uint8(10 + document.Length())
	}
	return 0
}

func (*headline) RankQueue(queue opilio.Queue) uint8 {
	if queue.Best() == 0 {
		return 0
	}
	return max(queue.Best(), queue.Base())
}

func (*headline) Observe(memory []byte, events []opilio.Finished) opilio.Observation {
	out := opilio.Observation{Memory: []byte{firstByte(memory) + byte(len(events))}}
	for _, event := range events {
		out.Lines = append(out.Lines, opilio.Line{File: "uris.txt", Text: event.URI})
	}
	return out
}

func (*headline) Report(memory []byte, now time.Time) []opilio.Report {
	return []opilio.Report{{File: "seen.txt", Content: fmt.Sprintf("%d by %d", firstByte(memory), now.UnixMilli())}}
}

func (*headline) Step(page opilio.Page, visit opilio.Visit, memory []byte) opilio.StepPlan {
	if page.Step() == 0 {
		return opilio.StepPlan{
			Actions: []opilio.Action{
				opilio.ScrollToTop{}, opilio.ScrollToBottom{}, opilio.ScrollTo(7), opilio.ScrollBy(-7), opilio.ScrollToElement("#a"),
				opilio.Click{Selector: "b"}, opilio.Click{Selector: "c", Text: "more", AtMost: 5, OnlyNew: true},
				opilio.WaitForSelector{Selector: ".d", AtMost: time.Second}, opilio.WaitForNetwork(2 * time.Second),
				opilio.Pause(3 * time.Millisecond), opilio.Evaluate("return 1"), opilio.Screenshot{},
			},
			Count: []string{"h1", "h2"}, Memory: []byte{1},
		}
	}
	count := func(selector string) string {
		if count, ok := page.Count(selector); ok {
			return fmt.Sprint(count)
		}
		return "none"
	}
	facts := []string{
		page.URI(), page.Title(), fmt.Sprint(page.Elements()), fmt.Sprint(page.ScrollTop()),
		fmt.Sprint(page.TimeLeft().Milliseconds()), fmt.Sprint(page.StepsLeft()), count("h1"), count("h2"),
	}
	clicked := firstByte(memory)
	for _, one := range page.Results() {
		clicked += byte(one.Clicked)
		if one.Kind == opilio.ResultValue || one.Kind == opilio.ResultException {
			facts = append(facts, one.Text)
		}
	}
	text := strings.Join(append(facts, visit.Candidate().URI()), " ")
	return opilio.StepPlan{Actions: []opilio.Action{opilio.Evaluate(text)}, Memory: []byte{clicked}, Finished: true}
}

func firstByte(memory []byte) byte {
	if len(memory) == 0 {
		return 0
	}
	return memory[0]
}

// echo is a plugin of the other kinds. It answers with its arguments.
type echo struct{ settings }

type settings struct {
	Word string `json:"word"`
}

func (e *echo) Extract(document opilio.Document) opilio.Extraction {
	kept, _ := document.Attribute("before")
	note, _ := document.Note("from")
	return opilio.Extraction{
		Links: []opilio.Link{
			{URI: document.Text(), Context: e.Word},
			{URI: kept.Value, Hop: opilio.EmbedHop, Modified: time.UnixMilli(5), Attributes: []opilio.NamedValue{{Name: "rel", Value: note}}},
		},
		Fragments: []opilio.Fragment{{MediaType: "text/css", BytesAt: &opilio.Span{Offset: 1, Length: 2}}},
		Base:      document.Base(),
	}
}

func (e *echo) JudgeCandidate(stage opilio.Stage, candidate opilio.Candidate) opilio.Ruling {
	if stage == opilio.PostFetchStage {
		return opilio.Retry(time.Minute, "later")
	}
	if strings.Contains(candidate.URI(), e.Word) {
		return opilio.Reject("has " + e.Word)
	}
	return opilio.Pass()
}

func (e *echo) Strip(document opilio.Document) ([]opilio.Span, error) {
	if document.Length() > 3 {
		return nil, opilio.TooLarge(document.Length())
	}
	return []opilio.Span{{Offset: 0, Length: document.Length()}}, nil
}

func (e *echo) Evaluate(visit opilio.Visit) (opilio.Wait, bool) {
	wait, waited := visit.LastWait()
	return opilio.Wait{NextVisit: 2 * wait}, waited
}

func init() {
	opilio.Export(opilio.About{Name: "headline", Version: "1.0.0"}, struct{}{}, func(struct{}) (*headline, []opilio.Fault) {
		return &headline{}, nil
	})
	opilio.Export(opilio.About{Name: "echo", Version: "1.0.0"}, settings{"x"}, func(from settings) (*echo, []opilio.Fault) {
		if from.Word == "" {
			return nil, []opilio.Fault{{Pointer: "/word", Problem: "is empty"}}
		}
		return &echo{from}, nil
	})
}

// folderWith returns a folder with the cases of the Rust SDK's test plugin and the given cases.
func folderWith(t *testing.T, cases string) string {
	t.Helper()
	folder := t.TempDir()
	kinds, err := os.ReadFile("../../rust/tests/kinds/headline.json")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"a.json": string(kinds), "b.json": cases, "page.bin": "\xe4"} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

func TestCasesOfEveryKindPass(t *testing.T) {
	CheckCases(t, folderWith(t, `[
		{"id": "extract", "plugin": "echo", "settings": {"word": "w"}, "call": {"extract": {"documents": [
			{"text": "one", "kept": {"uri": {"before": {"version": 1, "value": "b"}}}, "notes": [{"name": "from", "value": "n"}]}]}},
			"expected": [{"links": [{"uri": "one", "context": "w"},
				{"uri": "b", "hop": "embed", "details": {"dates": {"modified": 5}, "attributes": [{"name": "rel", "value": "n"}]}}],
				"fragments": [{"media-type": "text/css", "content": {"bytes-at": {"offset": 1, "length": 2}}}],
				"base": "http://example.com/"}]},
		{"id": "file", "plugin": "echo", "call": {"extract": {"documents": [{"file": "page.bin", "charset": "iso-8859-1", "base": "b:"}]}},
			"expected": [{"links": [{"uri": "ä", "context": "x"}, {"uri": "", "hop": "embed", "details": {"dates": {"modified": 5}, "attributes": [{"name": "rel"}]}}],
				"fragments": [{"media-type": "text/css", "content": {"bytes-at": {"offset": 1, "length": 2}}}], "base": "b:"}]},
		{"id": "candidates", "plugin": "echo", "call": {"judge-candidates": {"stage": "scope", "candidates": [{"uri": "x:"}, {"uri": "y:"}]}},
			"expected": [{"verdict": "reject", "reason": "has x"}, {"verdict": "pass"}]},
		{"id": "document", "plugin": "echo", "call": {"judge-document": {"stage": "post-fetch"}}, "expected": {"verdict": {"retry": 60000}}},
		{"id": "strip", "plugin": "echo", "call": {"strip": {"document": {"bytes": [1, 2]}}}, "expected": {"ok": [{"offset": 0, "length": 2}]}},
		{"id": "too-large", "plugin": "echo", "call": {"strip": {"document": {"text": "four"}}}, "expected": {"error": {"too-large": 4}}},
		{"id": "wait", "plugin": "echo", "call": {"evaluate": {"visit": {"last-wait": 7}}}, "expected": {"next-visit": 14}},
		{"id": "no-wait", "plugin": "echo", "call": {"evaluate": {"visit": {}}}, "expected": null},
		{"id": "refused", "plugin": "echo", "settings": {"word": ""}, "call": {"configure": {}}, "expected": [{"pointer": "/word"}]}
	]`))
}

func TestFailedCasesReportTheirProblem(t *testing.T) {
	check := func(one, problem string) {
		t.Helper()
		folder := folderWith(t, "["+one+"]")
		cases, err := readCases(folder)
		for _, one := range cases {
			if err == nil {
				var answer any
				if answer, err = one.run(folder); err == nil {
					err = checkAnswer(one.Expected, answer)
				}
			}
		}
		if err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%s: %v", one, err)
		}
	}
	wait := `{"id": "x", "plugin": "echo", "call": {"evaluate": {"visit": {"last-wait": 7}}}, "expected": `
	check(wait+`{"next-visit": 15}}`, `expected {"next-visit":15}`)
	check(wait+`{"next-visit": 14, "ask-again": 1}}`, `answered {"ask-again":0,"next-visit":14}`)
	check(wait+`null}`, "expected null")
	check(`{"id": "x", "plugin": "echo", "call": {"judge-candidates": {"stage": "scope", "candidates": [{"uri": "x:"}]}},
		"expected": [{"verdict": "reject", "reason": "why"}]}`, `"reason":"why"`)
	check(`{"id": "x", "plugin": "echo", "call": {"evaluate": {"visit": {"lst-wait": 7}}}, "expected": null}`, `unknown field "lst-wait"`)
	check(`{"id": "x", "plugin": "headline", "call": {"step": {"page": {"results": ["don"]}}}, "expected": null}`, `"don" is not a result of an action`)
	check(`{"id": "x", "plugin": "nobody", "call": {"configure": {}}, "expected": []}`, "no plugin with the name nobody")
	check(`{"id": "x", "plugin": "echo", "call": {"compare": {}}, "expected": null}`, "does not implement Compare")
	check(`{"id": "x", "plugin": "echo", "settings": {"word": 1}, "call": {"evaluate": {"visit": {}}}, "expected": null}`, "the plugin rejects its settings")
	check(`{"id": "x", "plugin": "echo", "call": {"extract": {"documents": [{"bytes": [1], "charset": "euc-jp"}]}}, "expected": []}`, "cannot decode euc-jp")
	check(`{"id": "headline-first", "plugin": "echo", "call": {"configure": {}}, "expected": []}`, "duplicate case id headline-first")
}
