// Package export_opilio_plugin_page_behavior has the functions that the generated bindings call. Package opilio sets them.
package export_opilio_plugin_page_behavior

import (
	documents "github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_documents"
	behavior "github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_page_behavior"
)

var (
	Step func(page *documents.Page, visit *documents.Visit, memory []uint8) behavior.StepPlan
)
