// Package export_opilio_plugin_precedence has the functions that the generated bindings call. Package opilio sets them.
package export_opilio_plugin_precedence

import (
	documents "github.com/opilio/opilio/sdk/go/bindings/imports/opilio_plugin_documents"
	"github.com/opilio/opilio/sdk/go/internal/wit"
)

var (
	RankCandidates func(*documents.Candidates, wit.Option[*documents.Document]) []wit.Option[uint8]
	RankQueue      func(*documents.Queue) wit.Option[uint8]
)
