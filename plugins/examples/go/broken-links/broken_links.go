// Writes down every link that leads nowhere, with the page that it stands on, and how many of them each site has.
package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	opilio "github.com/opilio/opilio/sdk/go"
)

type settings struct {
	Ignore []int `json:"ignore" doc:"Statuses that do not make a link broken, though they are errors: whoever has a password may see the page."`
}

type brokenLinks struct{ settings }

// What is remembered of a site between batches.
type site struct {
	Finished, Broken int
}

func (b *brokenLinks) broken(status int) bool {
	return (status < 0 || status >= 400) && !slices.Contains(b.Ignore, status)
}

func (b *brokenLinks) Observe(memory []byte, events []opilio.Finished) opilio.Observation {
	sites := remembered(memory)
	var lines []opilio.Line
	for _, event := range events {
		of := sites[event.Queue]
		of.Finished++
		if b.broken(event.Status) {
			of.Broken++
			lines = append(lines, opilio.Line{File: "broken-links.csv", Text: row(event)})
		}
		sites[event.Queue] = of
	}
	memory, err := json.Marshal(sites)
	if err != nil {
		panic(err)
	}
	return opilio.Observation{Memory: memory, Lines: lines}
}

func (b *brokenLinks) Report(memory []byte, _ time.Time) []opilio.Report {
	sites := remembered(memory)
	names := make([]string, 0, len(sites))
	for name := range sites {
		names = append(names, name)
	}
	// The most broken first; of two, the one that comes first in the alphabet.
	slices.SortFunc(names, func(a, b string) int {
		if more := sites[b].Broken - sites[a].Broken; more != 0 {
			return more
		}
		return strings.Compare(a, b)
	})
	var text strings.Builder
	for _, name := range names {
		fmt.Fprintf(&text, "%d of %d\t%s\n", sites[name].Broken, sites[name].Finished, name)
	}
	return []opilio.Report{{File: "broken-links.txt", Content: text.String()}}
}

// Nothing is remembered before the first batch.
func remembered(memory []byte) map[string]site {
	sites := map[string]site{}
	if len(memory) > 0 {
		if err := json.Unmarshal(memory, &sites); err != nil {
			panic(fmt.Sprintf("what was remembered cannot be read: %v", err))
		}
	}
	return sites
}

func row(event opilio.Finished) string {
	var text strings.Builder
	writer := csv.NewWriter(&text)
	// A builder takes everything.
	_ = writer.Write([]string{strconv.Itoa(event.Status), event.URI, event.Via})
	writer.Flush()
	return strings.TrimSuffix(text.String(), "\n")
}

func init() {
	opilio.Export(opilio.About{
		Name:    "broken-links",
		Version: "0.1.0",
		Summary: "Lists links that lead nowhere, with the pages they stand on.",
	}, settings{Ignore: []int{401, 403, 429}}, func(from settings) (*brokenLinks, []opilio.Fault) {
		return &brokenLinks{from}, nil
	})
}

func main() {}
