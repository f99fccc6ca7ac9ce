// Visits the pages of an editorial office often while the office is open, and seldom while it is closed. A wait never ends later
// than the next opening.
package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	opilio "github.com/opilio/opilio/sdk/go"
)

type settings struct {
	Days      []string `json:"days" doc:"Days on which something is published: mon, tue, wed, thu, fri, sat, sun." opilio:"overridable"`
	From      string   `json:"from" doc:"When the office opens, such as 06:00." opilio:"overridable"`
	To        string   `json:"to" doc:"When it closes, such as 22:00. A time before from is on the next day." opilio:"overridable"`
	UTCOffset string   `json:"utc-offset" doc:"The office's offset from UTC, such as +01:00 or Z. Summer time is not considered." opilio:"overridable"`
	Busy      string   `json:"busy" doc:"Wait until the next visit while the office is open, such as 15m." opilio:"overridable"`
	Quiet     string   `json:"quiet" doc:"Longest wait while the office is closed, such as 8h." opilio:"overridable"`
}

var defaults = settings{
	Days:      []string{"mon", "tue", "wed", "thu", "fri"},
	From:      "06:00",
	To:        "22:00",
	UTCOffset: "Z",
	Busy:      "15m",
	Quiet:     "8h",
}

type publishingHours struct {
	zone *time.Location
	// days are indexed by time.Weekday.
	days [7]bool
	// opens is the time from midnight until the office opens.
	opens time.Duration
	// openFor is the time from opening until closing.
	openFor     time.Duration
	busy, quiet time.Duration
}

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

func newPublishingHours(from settings) (*publishingHours, []opilio.Fault) {
	var faults []opilio.Fault
	addFault := func(pointer, format string, values ...any) {
		faults = append(faults, opilio.Fault{Pointer: pointer, Problem: fmt.Sprintf(format, values...)})
	}
	plugin := &publishingHours{}
	for n, day := range from.Days {
		weekday := slices.Index(weekdays, day)
		if weekday < 0 {
			addFault(fmt.Sprintf("/days/%d", n), "%q is not a day; write one of %s", day, strings.Join(weekdays, ", "))
			continue
		}
		plugin.days[weekday] = true
	}
	timeOfDay := func(pointer, value string) time.Duration {
		at, err := time.Parse("15:04", value)
		if err != nil {
			addFault(pointer, "%q is not a time of day; write it as 06:00", value)
		}
		return time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute
	}
	plugin.opens = timeOfDay("/from", from.From)
	plugin.openFor = timeOfDay("/to", from.To) - plugin.opens
	if plugin.openFor <= 0 {
		plugin.openFor += 24 * time.Hour
	}
	zoned, err := time.Parse("Z07:00", from.UTCOffset)
	if err != nil {
		addFault("/utc-offset", "%q is not an offset; write it as +01:00", from.UTCOffset)
	}
	_, seconds := zoned.Zone()
	plugin.zone = time.FixedZone("", seconds)
	duration := func(pointer, value string) time.Duration {
		length, err := time.ParseDuration(value)
		if err != nil || length <= 0 {
			addFault(pointer, "%q is not a duration; write it as 15m or 8h", value)
		}
		return length
	}
	plugin.busy = duration("/busy", from.Busy)
	plugin.quiet = duration("/quiet", from.Quiet)
	return plugin, faults
}

// Evaluate answers for every document. The host keeps the wait within the limits of the profile.
func (p *publishingHours) Evaluate(visit opilio.Visit) (opilio.Wait, bool) {
	now := visit.Now().In(p.zone)
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, p.zone)
	// The hours of yesterday can end today. The same weekday comes again after 7 days.
	for day := -1; day <= 7; day++ {
		begins := midnight.AddDate(0, 0, day)
		opens := begins.Add(p.opens)
		if !p.days[begins.Weekday()] || !now.Before(opens.Add(p.openFor)) {
			continue
		}
		if !now.Before(opens) {
			return opilio.Wait{NextVisit: p.busy}, true
		}
		return opilio.Wait{NextVisit: min(p.quiet, opens.Sub(now))}, true
	}
	return opilio.Wait{NextVisit: p.quiet}, true
}

func init() {
	opilio.Export(opilio.About{
		Name:    "publishing-hours",
		Version: "0.1.0",
		Summary: "Visits pages often while an editorial office is open, and seldom while it is closed.",
	}, defaults, newPublishingHours)
}

func main() {}
