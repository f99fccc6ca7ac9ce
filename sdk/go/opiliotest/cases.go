package opiliotest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
	"testing"

	opilio "github.com/opilio/opilio/sdk/go"
)

// A case of a file. docs/PLUGINS.md has the format.
type goldenCase struct {
	ID       string                      `json:"id"`
	Plugin   string                      `json:"plugin"`
	Settings json.RawMessage             `json:"settings"`
	Tables   map[string]opilio.TestTable `json:"tables"`
	Call     map[string]json.RawMessage  `json:"call"`
	Expected any                         `json:"expected"`
	Note     string                      `json:"note"`
}

// The arguments of all calls.
type arguments struct {
	Documents  []documentFacts  `json:"documents"`
	Document   *documentFacts   `json:"document"`
	Visit      visitFacts       `json:"visit"`
	Stage      string           `json:"stage"`
	Candidates []candidateFacts `json:"candidates"`
	Queue      queueFacts       `json:"queue"`
	Last       octets           `json:"last"`
	Memory     octets           `json:"memory"`
	Events     []eventFacts     `json:"events"`
	Page       pageFacts        `json:"page"`
	Now        uint64           `json:"now"`
}

// CheckCases runs the cases of a folder on the exported plugins, each as a test of its own. `opilio plugin test` runs the
// same cases on the component. Every plugin must have a case.
func CheckCases(t *testing.T, folder string) {
	t.Helper()
	cases, err := readCases(folder)
	if err != nil {
		t.Fatal(err)
	}
	tried := map[string]bool{}
	for _, one := range cases {
		tried[one.Plugin] = true
		t.Run(one.ID, func(t *testing.T) {
			answer, err := one.ask(folder)
			if err != nil {
				t.Fatal(err)
			}
			if problem := differs(one.Expected, answer); problem != nil {
				t.Fatal(problem)
			}
		})
	}
	for _, one := range opilio.TestPlugins() {
		if !tried[one.Name] {
			t.Errorf("%s has no case in %s", one.Name, folder)
		}
	}
}

func readCases(folder string) ([]goldenCase, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s has no cases (files that end in .json)", folder)
	}
	sort.Strings(files)
	var all []goldenCase
	known := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		var some []goldenCase
		if err := strictly(text, &some); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		for _, one := range some {
			if known[one.ID] {
				return nil, fmt.Errorf("%s: duplicate case id %s", file, one.ID)
			}
			known[one.ID] = true
			all = append(all, one)
		}
	}
	return all, nil
}

// strictly refuses unknown names. A misspelt name would otherwise count as left out.
func strictly(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// ask returns the plugin's answer as JSON.
func (c goldenCase) ask(folder string) (any, error) {
	var call string
	var given arguments
	if len(c.Call) != 1 {
		return nil, errors.New("a case must have exactly one call")
	}
	for name, text := range c.Call {
		call = name
		if err := strictly(text, &given); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for name, table := range c.Tables {
		if table.Kind != "surt-prefixes" && table.Kind != "key-values" {
			return nil, fmt.Errorf("native tests do not support tables of %s (%s): run this case on the component with opilio plugin test", table.Kind, name)
		}
	}
	plugin, faults, err := c.configured()
	if err != nil {
		return nil, err
	}
	if call == "configure" {
		return list(faults, faultJSON), nil
	}
	if len(faults) > 0 {
		return nil, fmt.Errorf("the plugin rejects its settings: %v", faults)
	}
	opilio.TestTables = c.Tables
	defer func() { opilio.TestTables = nil }()
	return question{call, given, folder}.put(plugin)
}

func (c goldenCase) configured() (any, []opilio.Fault, error) {
	settings := string(c.Settings)
	if settings == "" {
		settings = "{}"
	}
	for _, one := range opilio.TestPlugins() {
		if one.Name == c.Plugin {
			plugin, faults := one.Configure(settings)
			return plugin, faults, nil
		}
	}
	return nil, nil, fmt.Errorf("no plugin with the name %s; was its Export called?", c.Plugin)
}

// A call with its arguments, and the folder with the files of documents.
type question struct {
	call   string
	given  arguments
	folder string
}

func (q question) put(plugin any) (any, error) {
	given := q.given
	wrong := func(wanted string) (any, error) {
		return nil, fmt.Errorf("call %s: %T does not implement %s", q.call, plugin, wanted)
	}
	document := func() (*Document, error) {
		if given.Document == nil {
			given.Document = &documentFacts{}
		}
		return given.Document.made(q.folder)
	}
	switch q.call {
	case "extract":
		plugin, is := plugin.(opilio.Extractor)
		if !is {
			return wrong("Extract")
		}
		answer := []any{}
		for _, facts := range given.Documents {
			document, err := facts.made(q.folder)
			if err != nil {
				return nil, err
			}
			answer = append(answer, extractionJSON(plugin.Extract(document)))
		}
		return answer, nil
	case "judge-candidates":
		plugin, judges := plugin.(opilio.CandidateFilter)
		return list(given.Candidates, func(facts candidateFacts) any {
			// A filter that judges only documents passes, as in a component.
			if !judges {
				return rulingJSON(opilio.Pass())
			}
			return rulingJSON(plugin.JudgeCandidate(stage(given.Stage), facts.made()))
		}), nil
	case "judge-document":
		page, err := document()
		if err != nil {
			return nil, err
		}
		if plugin, is := plugin.(opilio.DocumentFilter); is {
			return rulingJSON(plugin.JudgeDocument(stage(given.Stage), page, given.Visit.made())), nil
		}
		if plugin, is := plugin.(opilio.CandidateFilter); is {
			return rulingJSON(plugin.JudgeCandidate(stage(given.Stage), given.Visit.Candidate.made())), nil
		}
		return wrong("JudgeDocument")
	case "strip":
		plugin, is := plugin.(opilio.DigestStripper)
		if !is {
			return wrong("Strip")
		}
		page, err := document()
		if err != nil {
			return nil, err
		}
		return strippedJSON(plugin.Strip(page)), nil
	case "compare":
		plugin, is := plugin.(opilio.ChangeEvaluator)
		if !is {
			return wrong("Compare")
		}
		page, err := document()
		if err != nil {
			return nil, err
		}
		return comparisonJSON(plugin.Compare(page, given.Visit.made(), given.Last)), nil
	case "evaluate":
		plugin, is := plugin.(opilio.WaitEvaluator)
		if !is {
			return wrong("Evaluate")
		}
		wait, answers := plugin.Evaluate(given.Visit.made())
		return waitJSON(wait, answers), nil
	case "rank-candidates":
		var page opilio.Document
		if given.Document != nil {
			made, err := document()
			if err != nil {
				return nil, err
			}
			page = made
		}
		plugin, ranks := plugin.(opilio.CandidatePrecedence)
		return list(given.Candidates, func(facts candidateFacts) any {
			if !ranks {
				return nil
			}
			return rankJSON(plugin.RankCandidate(facts.made(), page))
		}), nil
	case "rank-queue":
		if plugin, ranks := plugin.(opilio.QueuePrecedence); ranks {
			return rankJSON(plugin.RankQueue(given.Queue)), nil
		}
		return nil, nil
	case "observe":
		plugin, is := plugin.(opilio.Observer)
		if !is {
			return wrong("Observe")
		}
		events := make([]opilio.Finished, 0, len(given.Events))
		for _, facts := range given.Events {
			events = append(events, facts.made())
		}
		return observationJSON(plugin.Observe(given.Memory, events)), nil
	case "report":
		plugin, is := plugin.(opilio.Reporter)
		if !is {
			return []any{}, nil
		}
		return list(plugin.Report(given.Memory, instant(given.Now)), reportJSON), nil
	case "step":
		plugin, is := plugin.(opilio.PageBehavior)
		if !is {
			return wrong("Step")
		}
		return planJSON(plugin.Step(given.Page.made(), given.Visit.made(), given.Memory)), nil
	}
	return nil, fmt.Errorf("unknown call: %s", q.call)
}

// differs returns an error with the expected and the actual answer if they differ.
func differs(expected, answer any) error {
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return err
	}
	if reflect.DeepEqual(bare(plain, expected), bare(expected, expected)) {
		return nil
	}
	wanted, err := json.Marshal(expected)
	if err != nil {
		return err
	}
	return fmt.Errorf("expected %s\nanswered %s", wanted, text)
}

// bare removes fields at their defaults, and reasons and problems that the case does not expect.
func bare(value, expected any) any {
	switch value := value.(type) {
	case []any:
		wanted, _ := expected.([]any)
		made := make([]any, len(value))
		for at, item := range value {
			var one any
			if at < len(wanted) {
				one = wanted[at]
			}
			made[at] = bare(item, one)
		}
		return made
	case map[string]any:
		wanted, _ := expected.(map[string]any)
		_, extracts := value["links"]
		made := map[string]any{}
		for name, field := range value {
			_, asked := wanted[name]
			free := (name == "reason" || name == "problem") && !asked && !extracts
			field = bare(field, wanted[name])
			if !free && !isDefault(name, field) {
				made[name] = field
			}
		}
		return made
	}
	return value
}

func isDefault(name string, field any) bool {
	switch field := field.(type) {
	case nil:
		return true
	case bool:
		return !field
	case float64:
		return field == 0
	case string:
		return field == "" || name == "hop" && field == "link"
	case []any:
		return len(field) == 0
	case map[string]any:
		return len(field) == 0
	}
	return false
}

func stage(name string) opilio.Stage {
	names := []string{"scope", "pre-fetch", "mid-fetch", "post-fetch", "extract", "render", "archive", "plugin"}
	for at, known := range names {
		if strings.EqualFold(name, known) {
			return opilio.Stage(at)
		}
	}
	return opilio.OtherStage
}
