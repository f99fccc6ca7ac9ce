// Package export_opilio_plugin_digest_stripper has what the generated bindings call; package opilio sets it.
package export_opilio_plugin_digest_stripper

import (
	stripper "opilio/plugin/bindings/imports/opilio_plugin_digest_stripper"
	documents "opilio/plugin/bindings/imports/opilio_plugin_documents"
	types "opilio/plugin/bindings/imports/opilio_plugin_types"
	"opilio/plugin/internal/wit"
)

var (
	Strip func(*documents.Document) wit.Result[[]types.Span, stripper.StripProblem]
)
