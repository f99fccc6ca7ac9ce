package main

import (
	"testing"

	"github.com/opilio/opilio/sdk/go/opiliotest"
)

func TestCases(t *testing.T) { opiliotest.CheckCases(t, "cases") }
