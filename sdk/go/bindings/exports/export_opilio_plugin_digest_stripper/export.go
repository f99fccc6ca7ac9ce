// Package export_opilio_plugin_digest_stripper has the functions that the generated bindings call. Package opilio sets them.
package export_opilio_plugin_digest_stripper

import (
	stripper "github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_digest_stripper"
	documents "github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_documents"
	types "github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_types"
	"github.com/opilio/opilio/sdk/go/internal/wit"
)

var (
	Strip func(*documents.Document) wit.Result[[]types.Span, stripper.StripProblem]
)
