// Visits often while an editorial office is at work, and seldom when nobody publishes: outside its hours a page waits long,
// but no longer than until the office opens.
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
	To        string   `json:"to" doc:"When it closes; earlier than from means the next morning." opilio:"overridable"`
	UTCOffset string   `json:"utc-offset" doc:"The office's time zone, such as +01:00 or Z; it knows no summer time." opilio:"overridable"`
	Busy      string   `json:"busy" doc:"Wait while the office is open, such as 15m." opilio:"overridable"`
	Quiet     string   `json:"quiet" doc:"Longest wait while it is closed, such as 8h." opilio:"overridable"`
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
	zone        *time.Location
	days        [7]bool
	opens       time.Duration
	lasts       time.Duration
	busy, quiet time.Duration
}

var weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

func become(from settings) (*publishingHours, []opilio.Fault) {
	var faults []opilio.Fault
	wrong := func(pointer, format string, values ...any) {
		faults = append(faults, opilio.Fault{Pointer: pointer, Problem: fmt.Sprintf(format, values...)})
	}
	made := &publishingHours{}
	for n, day := range from.Days {
		weekday := slices.Index(weekdays, day)
		if weekday < 0 {
			wrong(fmt.Sprintf("/days/%d", n), "%q is no day; write one of %s", day, strings.Join(weekdays, ", "))
			continue
		}
		made.days[weekday] = true
	}
	clock := func(pointer, written string) time.Duration {
		at, err := time.Parse("15:04", written)
		if err != nil {
			wrong(pointer, "%q is no time of day; write it as 06:00", written)
		}
		return time.Duration(at.Hour())*time.Hour + time.Duration(at.Minute())*time.Minute
	}
	made.opens = clock("/from", from.From)
	made.lasts = clock("/to", from.To) - made.opens
	if made.lasts <= 0 {
		made.lasts += 24 * time.Hour
	}
	zoned, err := time.Parse("Z07:00", from.UTCOffset)
	if err != nil {
		wrong("/utc-offset", "%q is no offset; write it as +01:00", from.UTCOffset)
	}
	_, seconds := zoned.Zone()
	made.zone = time.FixedZone("", seconds)
	wait := func(pointer, written string) time.Duration {
		length, err := time.ParseDuration(written)
		if err != nil || length <= 0 {
			wrong(pointer, "%q is no length of time; write it as 15m or 8h", written)
		}
		return length
	}
	made.busy = wait("/busy", from.Busy)
	made.quiet = wait("/quiet", from.Quiet)
	return made, faults
}

// Evaluate answers for every document; what it says is kept within the profile's limits by the host.
func (p *publishingHours) Evaluate(visit opilio.Visit) (opilio.Wait, bool) {
	now := visit.Now().In(p.zone)
	midnight := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, p.zone)
	// Yesterday's hours may reach into today; a week has every day once.
	for day := -1; day <= 7; day++ {
		begins := midnight.AddDate(0, 0, day)
		opens := begins.Add(p.opens)
		if !p.days[begins.Weekday()] || !now.Before(opens.Add(p.lasts)) {
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
		Summary: "Visits often while an editorial office is at work, and seldom when nobody publishes.",
	}, defaults, become)
}

func main() {}
