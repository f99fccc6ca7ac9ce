// Package export_opilio_plugin_filter has the functions that the generated bindings call. Package opilio sets them.
package export_opilio_plugin_filter

import (
	documents "github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_documents"
	filter "github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_filter"
)

var (
	JudgeCandidates func(filter.Stage, *documents.Candidates) []filter.Ruling
	JudgeDocument   func(filter.Stage, *documents.Document, *documents.Visit) filter.Ruling
)
