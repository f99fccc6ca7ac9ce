// Package export_opilio_plugin_observer has the functions that the generated bindings call. Package opilio sets them.
package export_opilio_plugin_observer

import (
	observer "github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_observer"
)

var (
	Observe func(memory []uint8, events []observer.Finished) observer.Observation
	Report  func(memory []uint8, now uint64) []observer.ReportFile
)
