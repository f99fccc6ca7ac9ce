// Package export_opilio_plugin_wait_evaluator has the functions that the generated bindings call. Package opilio sets them.
package export_opilio_plugin_wait_evaluator

import (
	documents "github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_documents"
	evaluator "github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_wait_evaluator"
	"github.com/opilio/opilio/sdk/go/internal/wit"
)

var (
	Evaluate func(*documents.Visit) wit.Option[evaluator.Wait]
)
