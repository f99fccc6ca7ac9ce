package main

import (
	"testing"

	"opilio/plugin/opiliotest"
)

func TestItsCasesHold(t *testing.T) { opiliotest.CheckCases(t, "cases") }
