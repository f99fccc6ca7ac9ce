package opilio

import (
	"encoding/json"
	"reflect"
	"testing"
)

type testSettings struct {
	Names []string       `json:"names" doc:"Names to look for." opilio:"overridable,level=warning"`
	Max   uint32         `json:"max"`
	Share float64        `json:"share" opilio:"expert"`
	Sites map[string]int `json:"sites"`
	Inner struct {
		Deep bool `json:"deep"`
	} `json:"inner"`
	hidden string
}

type testPlugin struct{}

func (*testPlugin) Extract(Document) Extraction { return Extraction{} }

func (*testPlugin) JudgeDocument(Stage, Document, Visit) Ruling { return Pass() }

func testEntry() entry {
	return newEntry(About{Name: "test"}, testSettings{Names: []string{"a"}, Max: 3, Share: 0.5}, func(s testSettings) (*testPlugin, []Fault) {
		if s.Max == 0 {
			return nil, []Fault{{"/max", "is 0"}}
		}
		return &testPlugin{}, nil
	})
}

func TestMethodsDetermineKinds(t *testing.T) {
	if got := testEntry().kinds; !reflect.DeepEqual(got, []kind{extractor, filter}) {
		t.Fatal(got)
	}
}

func TestSchemaHasTypesDefaultsAndDescriptions(t *testing.T) {
	var got map[string]any
	if err := json.Unmarshal([]byte(testEntry().schema), &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"type":                 "object",
		"additionalProperties": false,
		"properties": map[string]any{
			"names": map[string]any{
				"type": "array", "items": map[string]any{"type": "string"}, "default": []any{"a"},
				"description": "Names to look for.", "x-opilio-overridable": true, "x-opilio-level": "warning",
			},
			"max":   map[string]any{"type": "integer", "minimum": 0.0, "default": 3.0},
			"share": map[string]any{"type": "number", "default": 0.5, "x-opilio-expert": true},
			"sites": map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "integer"}, "default": map[string]any{}},
			"inner": map[string]any{
				"type": "object", "additionalProperties": false,
				"properties": map[string]any{"deep": map[string]any{"type": "boolean", "default": false}},
				"default":    map[string]any{"deep": false},
			},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Fatalf("got %v\nwant %v", got, want)
	}
}

func TestInvalidSettingsAreFaultsWithPointers(t *testing.T) {
	check := func(settings string, want ...Fault) {
		t.Helper()
		if _, got := testEntry().configure(settings); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", settings, got, want)
		}
	}
	check(`{}`)
	check(`{"max": 1, "names": []}`)
	check(`{"max": 0}`, Fault{"/max", "is 0"})
	check(`{"max": "many"}`, Fault{"/max", "is a string; it must be a uint32"})
	check(`{"inner": {"deep": 1}}`, Fault{"/inner/deep", "is a number; it must be a bool"})
	check(`{"maximum": 1}`, Fault{"", `unknown field "maximum"`})
}

func TestSettingsReplaceListsAndMapsAndKeepTheDefaultsUnchanged(t *testing.T) {
	defaults := testSettings{Names: []string{"a", "b"}, Sites: map[string]int{"a": 1}}
	got, faults := readSettings(`{"names": ["c"], "sites": {"c": 3}, "inner": {"deep": true}}`, defaults)
	if want := (testSettings{Names: []string{"c"}, Sites: map[string]int{"c": 3}, Inner: got.Inner}); faults != nil || !got.Inner.Deep || !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, %v; want %v", got, faults, want)
	}
	if want := (testSettings{Names: []string{"a", "b"}, Sites: map[string]int{"a": 1}}); !reflect.DeepEqual(defaults, want) {
		t.Errorf("the defaults changed to %v", defaults)
	}
}
