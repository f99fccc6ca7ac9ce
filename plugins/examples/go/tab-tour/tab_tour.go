// Opens the tabs of a page one after the other. Many pages load the content of a tab only when it is selected. Without this
// plugin, a crawl misses the images and links of the other tabs. At the end the plugin opens the first tab again, because the
// page begins with it.
package main

import (
	"slices"
	"strconv"
	"strings"
	"time"

	opilio "github.com/opilio/opilio/sdk/go"
)

// tabsOfStep is the maximum number of tabs that one step opens.
const tabsOfStep = 10

// contentTimeMax is the longest wait for the content of one tab.
const contentTimeMax = 3 * time.Second

type settings struct {
	Tabs    string `json:"tabs" doc:"CSS selector of the tabs." opilio:"overridable"`
	TabsMax uint32 `json:"tabs-max" doc:"Maximum number of tabs to open on a page." opilio:"overridable"`
}

type tabTour struct{ settings }

func newTabTour(from settings) (*tabTour, []opilio.Fault) {
	var faults []opilio.Fault
	if strings.TrimSpace(from.Tabs) == "" {
		faults = append(faults, opilio.Fault{Pointer: "/tabs", Problem: "is empty; write a CSS selector"})
	}
	if from.TabsMax == 0 {
		faults = append(faults, opilio.Fault{Pointer: "/tabs-max", Problem: "is 0; write 1 or more"})
	}
	return &tabTour{from}, faults
}

// Step counts the tabs of the page first, because most pages have none. Its memory is the number of opened tabs.
func (t *tabTour) Step(page opilio.Page, _ opilio.Visit, memory []byte) opilio.StepPlan {
	if page.Step() == 0 {
		return opilio.StepPlan{Count: []string{t.Tabs}}
	}
	tabs, isValid := page.Count(t.Tabs)
	if !isValid {
		opilio.Warn("invalid CSS selector: %s", t.Tabs)
	}
	opened := number(memory)
	for _, result := range page.Results() {
		opened += uint64(result.Clicked)
	}
	// Tabs that are not visible are counted, and cannot be clicked.
	isLast := slices.ContainsFunc(page.Results(), func(result opilio.ActionResult) bool {
		return result.Kind == opilio.ResultNoElement
	})
	tabsToOpen := min(tabs, uint64(t.TabsMax))
	switch {
	case tabs < 2:
		// A single tab hides no content.
		return opilio.StepPlan{Finished: true}
	case isLast || opened >= tabsToOpen:
		opilio.Count("tabs", opened)
		return opilio.StepPlan{Actions: []opilio.Action{opilio.Click{Selector: t.Tabs}}, Finished: true}
	}
	return opilio.StepPlan{
		Actions: t.open(min(tabsToOpen-opened, tabsOfStep)),
		Count:   []string{t.Tabs},
		Memory:  []byte(strconv.FormatUint(opened, 10)),
	}
}

// open clicks this number of further tabs. After each click it waits, so that the content has loaded before the next tab
// replaces it.
func (t *tabTour) open(tabs uint64) []opilio.Action {
	var actions []opilio.Action
	for range tabs {
		actions = append(actions, opilio.Click{Selector: t.Tabs, OnlyNew: true}, opilio.WaitForNetwork(contentTimeMax))
	}
	return actions
}

// number returns the number of opened tabs from the memory. The memory is empty before the first tab.
func number(memory []byte) uint64 {
	if len(memory) == 0 {
		return 0
	}
	opened, err := strconv.ParseUint(string(memory), 10, 64)
	if err != nil {
		panic("the memory is not a number: " + err.Error())
	}
	return opened
}

func init() {
	opilio.Export(opilio.About{
		Name:       "tab-tour",
		Version:    "0.1.0",
		Summary:    "Opens the tabs of a page one after the other.",
		MediaTypes: []string{"text/html", "application/xhtml+xml"},
	}, settings{
		Tabs:    `[role="tab"], [data-toggle="tab"], [data-bs-toggle="tab"]`,
		TabsMax: 50,
	}, newTabTour)
}

func main() {}
