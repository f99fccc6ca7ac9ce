// Finds URIs in HTML without parsing it: the extractor that exists in every language, for comparison.
package main

import (
	"fmt"
	"strings"

	opilio "github.com/opilio/opilio/sdk/go"
)

const (
	space          = " \t\n\f\r"
	nameCharacters = "abcdefghijklmnopqrstuvwxyz0123456789-"
)

type settings struct {
	Attributes []string `json:"attributes" doc:"Attributes whose values are URIs." opilio:"overridable"`
}

type linkScan struct{ attributes []attribute }

type attribute struct {
	name, context string
	hop           opilio.Hop
}

func newLinkScan(from settings) (*linkScan, []opilio.Fault) {
	var faults []opilio.Fault
	plugin := &linkScan{}
	for n, name := range from.Attributes {
		if name == "" || strings.Trim(name, nameCharacters) != "" {
			faults = append(faults, opilio.Fault{Pointer: fmt.Sprintf("/attributes/%d", n), Problem: "not a name of an attribute"})
		}
		hop := opilio.EmbedHop
		if name == "href" {
			hop = opilio.LinkHop
		}
		plugin.attributes = append(plugin.attributes, attribute{name, "@" + name, hop})
	}
	return plugin, faults
}

func (l *linkScan) Extract(document opilio.Document) opilio.Extraction {
	var out opilio.Extraction
	text := document.Text()
	for at := 0; at < len(text); {
		if at > 0 && isSpace(text[at-1]) {
			if found := l.attributeAt(text[at:]); found != nil {
				at += len(found.name) + 1
				value, length := valueOf(text[at:])
				at += length
				if value != "" {
					out.Links = append(out.Links, opilio.Link{URI: value, Hop: found.hop, Context: found.context})
				}
				continue
			}
		}
		scheme := schemeOf(text[at:])
		if scheme == 0 {
			at++
			continue
		}
		end := at + scheme
		for end < len(text) && !isSpace(text[end]) && !strings.Contains("\"'<>", text[end:end+1]) {
			end++
		}
		rest := strings.TrimRight(text[at+scheme:end], ".,;:!?)")
		if rest != "" {
			uri := text[at : at+scheme+len(rest)]
			out.Links = append(out.Links, opilio.Link{URI: uri, Hop: opilio.SpeculativeHop, Context: "text"})
		}
		at = end
	}
	return out
}

// attributeAt returns the attribute whose name and equals sign are at the beginning of the text, or nil.
func (l *linkScan) attributeAt(text string) *attribute {
	for n := range l.attributes {
		name := l.attributes[n].name
		if len(text) > len(name) && text[len(name)] == '=' && equalFoldASCII(text[:len(name)], name) {
			return &l.attributes[n]
		}
	}
	return nil
}

// equalFoldASCII compares a text with a lower-case name of the same length.
func equalFoldASCII(text, name string) bool {
	for n := range len(name) {
		c := text[n]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != name[n] {
			return false
		}
	}
	return true
}

// valueOf returns the value at the beginning of the text, and its length with the quotes. If the closing quote is missing, the
// value is empty and the length is that of the opening quote.
func valueOf(text string) (string, int) {
	if text != "" && (text[0] == '"' || text[0] == '\'') {
		length := strings.IndexByte(text[1:], text[0])
		if length < 0 {
			return "", 1
		}
		return cleaned(text[1 : 1+length]), length + 2
	}
	length := strings.IndexAny(text, space+">")
	if length < 0 {
		length = len(text)
	}
	return cleaned(text[:length]), length
}

// cleaned removes white space around a value and decodes &amp;.
func cleaned(value string) string {
	return strings.ReplaceAll(strings.Trim(value, space), "&amp;", "&")
}

// schemeOf returns the length of the scheme and slashes at the beginning of the text; 0 for other texts.
func schemeOf(text string) int {
	for _, scheme := range []string{"http://", "https://"} {
		if strings.HasPrefix(text, scheme) {
			return len(scheme)
		}
	}
	return 0
}

func isSpace(c byte) bool { return strings.IndexByte(space, c) >= 0 }

func init() {
	opilio.Export(opilio.About{
		Name:       "link-scan",
		Version:    "0.1.0",
		Summary:    "Finds URIs in HTML without parsing it.",
		MediaTypes: []string{"text/html"},
	}, settings{Attributes: []string{"href", "src"}}, newLinkScan)
}

func main() {}
