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
// The tag `opilio` is a list of words, joined by commas: overridable, expert, table (the value is the name of a table), and
// level=info, level=warning or level=error. The values of the struct are the defaults in the schema.
func schemaOf(defaults any) string {
	text, err := json.Marshal(schema(reflect.ValueOf(defaults)))
	if err != nil {
		panic(fmt.Sprintf("cannot write the defaults of the settings as JSON: %v", err))
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
			if name := jsonName(field); name != "" {
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
		panic(fmt.Sprintf("settings cannot have values of type %s: the SDK has no schema for it", value.Type()))
	}
}

// jsonName returns the name of a field in JSON. It is empty for fields that are not in JSON.
func jsonName(field reflect.StructField) string {
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
	result := schema(value)
	if value.Kind() == reflect.Slice && value.IsNil() {
		result["default"] = []any{}
	} else if value.Kind() == reflect.Map && value.IsNil() {
		result["default"] = object{}
	} else {
		result["default"] = value.Interface()
	}
	if doc := field.Tag.Get("doc"); doc != "" {
		result["description"] = doc
	}
	for _, word := range strings.Split(field.Tag.Get("opilio"), ",") {
		name, level, _ := strings.Cut(word, "=")
		switch name {
		case "":
		case "level":
			result["x-opilio-level"] = level
		case "overridable", "expert", "table":
			result["x-opilio-"+name] = true
		default:
			panic(fmt.Sprintf("unknown word %q in the tag `opilio` of %s; write overridable, expert, table or level=…", word, field.Name))
		}
	}
	return result
}

// readSettings returns the settings of a JSON text, with defaults for those that are missing.
func readSettings[S any](text string, defaults S) (S, []Fault) {
	settings := defaults
	clearGiven(reflect.ValueOf(&settings).Elem(), []byte(text))
	decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&settings)
	if err == nil {
		return settings, nil
	}
	var typeError *json.UnmarshalTypeError
	if errors.As(err, &typeError) {
		problem := fmt.Sprintf("is a %s; it must be a %s", typeError.Value, typeError.Type)
		return settings, []Fault{{"/" + strings.ReplaceAll(typeError.Field, ".", "/"), problem}}
	}
	return settings, []Fault{{"", strings.TrimPrefix(err.Error(), "json: ")}}
}

// clearGiven removes the defaults of lists and maps that the JSON text has. Otherwise the decoder would overwrite the elements
// of the default list, which later calls use too, and add to the default map.
func clearGiven(settings reflect.Value, text []byte) {
	if settings.Kind() != reflect.Struct {
		return
	}
	var given map[string]json.RawMessage
	if json.Unmarshal(text, &given) != nil {
		return
	}
	for n := range settings.NumField() {
		field := settings.Field(n)
		value, ok := given[jsonName(settings.Type().Field(n))]
		if !ok {
			continue
		}
		if kind := field.Kind(); kind == reflect.Slice || kind == reflect.Map {
			field.SetZero()
		}
		clearGiven(field, value)
	}
}
