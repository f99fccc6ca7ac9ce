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

// goldenCase is one case of a file. docs/PLUGINS.md describes the format.
type goldenCase struct {
	ID       string                      `json:"id"`
	Plugin   string                      `json:"plugin"`
	Settings json.RawMessage             `json:"settings"`
	Tables   map[string]opilio.TestTable `json:"tables"`
	Call     map[string]json.RawMessage  `json:"call"`
	Expected any                         `json:"expected"`
	Note     string                      `json:"note"`
}

// arguments has the arguments of all calls. A case has those of its own call.
type arguments struct {
	Documents  []documentFacts  `json:"documents"`
	Document   *documentFacts   `json:"document"`
	Visit      visitFacts       `json:"visit"`
	Stage      string           `json:"stage"`
	Candidates []candidateFacts `json:"candidates"`
	Queue      queueFacts       `json:"queue"`
	Last       byteList         `json:"last"`
	Memory     byteList         `json:"memory"`
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
	tested := map[string]bool{}
	for _, one := range cases {
		tested[one.Plugin] = true
		t.Run(one.ID, func(t *testing.T) {
			answer, err := one.run(folder)
			if err != nil {
				t.Fatal(err)
			}
			if problem := checkAnswer(one.Expected, answer); problem != nil {
				t.Fatal(problem)
			}
		})
	}
	for _, one := range opilio.TestPlugins() {
		if !tested[one.Name] {
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
		if err := decodeStrictly(text, &some); err != nil {
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

// decodeStrictly returns an error for unknown names. Otherwise a misspelt name would count as left out.
func decodeStrictly(text []byte, into any) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	return decoder.Decode(into)
}

// run calls the plugin and returns its answer as JSON.
func (c goldenCase) run(folder string) (any, error) {
	var call string
	var given arguments
	if len(c.Call) != 1 {
		return nil, errors.New("a case must have exactly one call")
	}
	for name, text := range c.Call {
		call = name
		if err := decodeStrictly(text, &given); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	for name, table := range c.Tables {
		if table.Kind != "surt-prefixes" && table.Kind != "key-values" {
			return nil, fmt.Errorf("native tests do not support tables of %s (%s): run this case on the component with opilio plugin test", table.Kind, name)
		}
	}
	plugin, faults, err := c.configure()
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
	return pluginCall{call, given, folder}.run(plugin)
}

// configure returns the plugin of the case with its settings, or the faults in them.
func (c goldenCase) configure() (any, []opilio.Fault, error) {
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

// pluginCall is a call with its arguments, and the folder with the files of documents.
type pluginCall struct {
	name      string
	arguments arguments
	folder    string
}

func (c pluginCall) run(plugin any) (any, error) {
	given := c.arguments
	notImplemented := func(method string) (any, error) {
		return nil, fmt.Errorf("call %s: %T does not implement %s", c.name, plugin, method)
	}
	document := func() (*Document, error) {
		if given.Document == nil {
			given.Document = &documentFacts{}
		}
		return given.Document.document(c.folder)
	}
	switch c.name {
	case "extract":
		plugin, ok := plugin.(opilio.Extractor)
		if !ok {
			return notImplemented("Extract")
		}
		answer := []any{}
		for _, facts := range given.Documents {
			document, err := facts.document(c.folder)
			if err != nil {
				return nil, err
			}
			answer = append(answer, extractionJSON(plugin.Extract(document)))
		}
		return answer, nil
	case "judge-candidates":
		plugin, judges := plugin.(opilio.CandidateFilter)
		return list(given.Candidates, func(facts candidateFacts) any {
			// A filter without JudgeCandidate passes, as in a component.
			if !judges {
				return rulingJSON(opilio.Pass())
			}
			return rulingJSON(plugin.JudgeCandidate(stage(given.Stage), facts.candidate()))
		}), nil
	case "judge-document":
		page, err := document()
		if err != nil {
			return nil, err
		}
		if plugin, ok := plugin.(opilio.DocumentFilter); ok {
			return rulingJSON(plugin.JudgeDocument(stage(given.Stage), page, given.Visit.visit())), nil
		}
		if plugin, ok := plugin.(opilio.CandidateFilter); ok {
			return rulingJSON(plugin.JudgeCandidate(stage(given.Stage), given.Visit.Candidate.candidate())), nil
		}
		return notImplemented("JudgeDocument")
	case "strip":
		plugin, ok := plugin.(opilio.DigestStripper)
		if !ok {
			return notImplemented("Strip")
		}
		page, err := document()
		if err != nil {
			return nil, err
		}
		return strippedJSON(plugin.Strip(page)), nil
	case "compare":
		plugin, ok := plugin.(opilio.ChangeEvaluator)
		if !ok {
			return notImplemented("Compare")
		}
		page, err := document()
		if err != nil {
			return nil, err
		}
		return comparisonJSON(plugin.Compare(page, given.Visit.visit(), given.Last)), nil
	case "evaluate":
		plugin, ok := plugin.(opilio.WaitEvaluator)
		if !ok {
			return notImplemented("Evaluate")
		}
		wait, answers := plugin.Evaluate(given.Visit.visit())
		return waitJSON(wait, answers), nil
	case "rank-candidates":
		var page opilio.Document
		if given.Document != nil {
			decoded, err := document()
			if err != nil {
				return nil, err
			}
			page = decoded
		}
		plugin, ranks := plugin.(opilio.CandidatePrecedence)
		return list(given.Candidates, func(facts candidateFacts) any {
			if !ranks {
				return nil
			}
			return rankJSON(plugin.RankCandidate(facts.candidate(), page))
		}), nil
	case "rank-queue":
		if plugin, ranks := plugin.(opilio.QueuePrecedence); ranks {
			return rankJSON(plugin.RankQueue(given.Queue)), nil
		}
		return nil, nil
	case "observe":
		plugin, ok := plugin.(opilio.Observer)
		if !ok {
			return notImplemented("Observe")
		}
		events := make([]opilio.Finished, 0, len(given.Events))
		for _, facts := range given.Events {
			events = append(events, facts.event())
		}
		return observationJSON(plugin.Observe(given.Memory, events)), nil
	case "report":
		plugin, ok := plugin.(opilio.Reporter)
		if !ok {
			return []any{}, nil
		}
		return list(plugin.Report(given.Memory, instant(given.Now)), reportJSON), nil
	case "step":
		plugin, ok := plugin.(opilio.PageBehavior)
		if !ok {
			return notImplemented("Step")
		}
		return planJSON(plugin.Step(given.Page.page(), given.Visit.visit(), given.Memory)), nil
	}
	return nil, fmt.Errorf("unknown call: %s", c.name)
}

// checkAnswer returns an error with the expected and the actual answer if they differ.
func checkAnswer(expected, answer any) error {
	text, err := json.Marshal(answer)
	if err != nil {
		return err
	}
	var plain any
	if err := json.Unmarshal(text, &plain); err != nil {
		return err
	}
	if reflect.DeepEqual(withoutDefaults(plain, expected), withoutDefaults(expected, expected)) {
		return nil
	}
	wanted, err := json.Marshal(expected)
	if err != nil {
		return err
	}
	return fmt.Errorf("expected %s\nanswered %s", wanted, text)
}

// withoutDefaults removes fields at their defaults. It also removes reasons and problems that the case does not expect; only the
// problem of an extraction always counts.
func withoutDefaults(value, expected any) any {
	switch value := value.(type) {
	case []any:
		expectedItems, _ := expected.([]any)
		result := make([]any, len(value))
		for at, item := range value {
			var expectedItem any
			if at < len(expectedItems) {
				expectedItem = expectedItems[at]
			}
			result[at] = withoutDefaults(item, expectedItem)
		}
		return result
	case map[string]any:
		expectedFields, _ := expected.(map[string]any)
		_, isExtraction := value["links"]
		result := map[string]any{}
		for name, field := range value {
			_, isExpected := expectedFields[name]
			isOptional := (name == "reason" || name == "problem") && !isExpected && !isExtraction
			field = withoutDefaults(field, expectedFields[name])
			if !isOptional && !isDefault(name, field) {
				result[name] = field
			}
		}
		return result
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
