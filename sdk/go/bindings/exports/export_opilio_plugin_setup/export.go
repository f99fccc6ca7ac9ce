// Package export_opilio_plugin_setup has the functions that the generated bindings call. Package opilio sets them.
package export_opilio_plugin_setup

import (
	setup "github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_setup"
	"github.com/opilio/opilio/sdk/go/internal/wit"
)

var (
	Describe  func() []setup.Description
	Configure func(name, settings string) wit.Result[wit.Unit, []setup.SettingsFault]
)
