// Package export_opilio_plugin_wait_evaluator has what the generated bindings call; package opilio sets it.
package export_opilio_plugin_wait_evaluator

import (
	documents "opilio/plugin/bindings/imports/opilio_plugin_documents"
	evaluator "opilio/plugin/bindings/imports/opilio_plugin_wait_evaluator"
	"opilio/plugin/internal/wit"
)

var (
	Evaluate func(*documents.Visit) wit.Option[evaluator.Wait]
)
