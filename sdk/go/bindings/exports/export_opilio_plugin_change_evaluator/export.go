// Package export_opilio_plugin_change_evaluator has the functions that the generated bindings call. Package opilio sets them.
package export_opilio_plugin_change_evaluator

import (
	evaluator "github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_change_evaluator"
	documents "github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_documents"
	"github.com/opilio/opilio/sdk/go/internal/wit"
)

var (
	Compare func(document *documents.Document, visit *documents.Visit, last wit.Option[[]uint8]) evaluator.Comparison
)
