package opilio

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// schemaOf returns the JSON Schema of a struct of settings. A field is written like this:
//
//	Word string `json:"word" doc:"The word to look for." opilio:"overridable"`
//
// The tag `opilio` has overridable, expert, table (for names of tables), and level=info, level=warning or level=error,
// joined by commas. The values of the struct are the defaults in the schema.
func schemaOf(defaults any) string {
	text, err := json.Marshal(schema(reflect.ValueOf(defaults)))
	if err != nil {
		panic(fmt.Sprintf("the defaults of the settings are no JSON: %v", err))
	}
	return string(text)
}

type object = map[string]any

func schema(value reflect.Value) object {
	switch value.Kind() {
	case reflect.Struct:
		properties := object{}
		for n := range value.NumField() {
			field := value.Type().Field(n)
			if name := nameOf(field); name != "" {
				properties[name] = property(field, value.Field(n))
			}
		}
		return object{"type": "object", "properties": properties, "additionalProperties": false}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	case reflect.Slice:
		return object{"type": "array", "items": schema(reflect.New(value.Type().Elem()).Elem())}
	case reflect.Map:
		return object{"type": "object", "additionalProperties": schema(reflect.New(value.Type().Elem()).Elem())}
	default:
		panic(fmt.Sprintf("settings hold a %s, for which there is no schema", value.Type()))
	}
}

// nameOf returns the name of a field in JSON, or an empty text for fields that are not in JSON.
func nameOf(field reflect.StructField) string {
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	switch {
	case !field.IsExported() || name == "-":
		return ""
	case name == "":
		return field.Name
	}
	return name
}

func property(field reflect.StructField, value reflect.Value) object {
	made := schema(value)
	if value.Kind() == reflect.Slice && value.IsNil() {
		made["default"] = []any{}
	} else if value.Kind() == reflect.Map && value.IsNil() {
		made["default"] = object{}
	} else {
		made["default"] = value.Interface()
	}
	if doc := field.Tag.Get("doc"); doc != "" {
		made["description"] = doc
	}
	for _, word := range strings.Split(field.Tag.Get("opilio"), ",") {
		name, level, _ := strings.Cut(word, "=")
		switch name {
		case "":
		case "level":
			made["x-opilio-level"] = level
		case "overridable", "expert", "table":
			made["x-opilio-"+name] = true
		default:
			panic(fmt.Sprintf("the tag of %s holds %q; it may hold overridable, expert, table, level=…", field.Name, word))
		}
	}
	return made
}

// read returns the given settings, with defaults for those that are missing.
func read[S any](text string, defaults S) (S, []Fault) {
	settings := defaults
	forget(reflect.ValueOf(&settings).Elem(), []byte(text))
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&settings)
	if err == nil {
		return settings, nil
	}
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		problem := fmt.Sprintf("is a %s; it must be a %s", wrong.Value, wrong.Type)
		return settings, []Fault{{"/" + strings.ReplaceAll(wrong.Field, ".", "/"), problem}}
	}
	return settings, []Fault{{"", strings.TrimPrefix(err.Error(), "json: ")}}
}

// forget clears the defaults of given lists and maps. The decoder would otherwise write into the list that all plugins
// share, and add to the map.
func forget(settings reflect.Value, text []byte) {
	if settings.Kind() != reflect.Struct {
		return
	}
	var given map[string]json.RawMessage
	if json.Unmarshal(text, &given) != nil {
		return
	}
	for n := range settings.NumField() {
		field := settings.Field(n)
		part, is := given[nameOf(settings.Type().Field(n))]
		if !is {
			continue
		}
		if kind := field.Kind(); kind == reflect.Slice || kind == reflect.Map {
			field.SetZero()
		}
		forget(field, part)
	}
}
