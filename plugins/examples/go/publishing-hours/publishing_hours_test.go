package main

import (
	"testing"
	"time"

	"github.com/opilio/opilio/sdk/go/opiliotest"
)

func TestCases(t *testing.T) { opiliotest.CheckCases(t, "cases") }

func TestWaitEndsWhenTheOfficeOpens(t *testing.T) {
	plugin, faults := newPublishingHours(defaults)
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	visit := &opiliotest.Visit{At: time.Date(2026, 11, 18, 5, 30, 0, 0, time.UTC)}
	if wait, ok := plugin.Evaluate(visit); !ok || wait.NextVisit != 30*time.Minute {
		t.Fatal(wait, ok)
	}
}
