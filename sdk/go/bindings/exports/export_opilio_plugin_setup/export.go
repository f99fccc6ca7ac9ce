// Package export_opilio_plugin_setup has what the generated bindings call; package opilio sets it.
package export_opilio_plugin_setup

import (
	setup "opilio/plugin/bindings/imports/opilio_plugin_setup"
	"opilio/plugin/internal/wit"
)

var (
	Describe  func() []setup.Description
	Configure func(name, settings string) wit.Result[wit.Unit, []setup.SettingsFault]
)
