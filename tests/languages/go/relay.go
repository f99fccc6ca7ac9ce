// Reports the first line of a document as a link and the rest as a fragment. Fails on the texts `fail` and `wrong`.
package main

import (
	"strings"

	opilio "github.com/opilio/opilio/sdk/go"
)

type relay struct{}

func (relay) Extract(document opilio.Document) opilio.Extraction {
	switch document.Text() {
	case "fail":
		panic("relay-go was told to fail")
	case "wrong":
		// The index is out of range.
		return opilio.Extraction{Base: strings.Split("wrong", " ")[document.Length()]}
	}
	line, rest, more := strings.Cut(document.Text(), "\n")
	out := opilio.Extraction{Links: []opilio.Link{{URI: line, Hop: opilio.LinkHop, Context: "relay/go"}}}
	if more {
		out.Fragments = []opilio.Fragment{{MediaType: "application/x-relay-js", Text: rest, Context: "rest"}}
	}
	return out
}

func init() {
	opilio.Export(opilio.About{
		Name:       "relay-go",
		Version:    "1.0.0",
		Summary:    "Reports the first line as a link and the rest as a fragment.",
		MediaTypes: []string{"application/x-relay-go"},
	}, struct{}{}, func(struct{}) (*relay, []opilio.Fault) { return &relay{}, nil })
}

func main() {}
