// Package export_opilio_plugin_extractor has the functions that the generated bindings call. Package opilio sets them.
package export_opilio_plugin_extractor

import (
	documents "github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_documents"
	extractor "github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_extractor"
)

var (
	Extract func(documents []*documents.Document) []extractor.Extraction
)
