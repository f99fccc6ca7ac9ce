// Lists every broken link with the page that contains it, and counts the broken links of each queue.
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
	Ignore []int `json:"ignore" doc:"Statuses of errors that do not count as broken links, because some visitors can see the page."`
}

type brokenLinks struct{ settings }

// queueCounts is what the plugin remembers of a queue between batches.
type queueCounts struct {
	Finished, Broken int
}

func (b *brokenLinks) broken(status int) bool {
	return (status < 0 || status >= 400) && !slices.Contains(b.Ignore, status)
}

func (b *brokenLinks) Observe(memory []byte, events []opilio.Finished) opilio.Observation {
	queues := decodeMemory(memory)
	var lines []opilio.Line
	for _, event := range events {
		counts := queues[event.Queue]
		counts.Finished++
		if b.broken(event.Status) {
			counts.Broken++
			lines = append(lines, opilio.Line{File: "broken-links.csv", Text: row(event)})
		}
		queues[event.Queue] = counts
	}
	memory, err := json.Marshal(queues)
	if err != nil {
		panic(err)
	}
	return opilio.Observation{Memory: memory, Lines: lines}
}

func (b *brokenLinks) Report(memory []byte, _ time.Time) []opilio.Report {
	queues := decodeMemory(memory)
	names := make([]string, 0, len(queues))
	for name := range queues {
		names = append(names, name)
	}
	// Most broken links first, then in alphabetical order.
	slices.SortFunc(names, func(a, b string) int {
		if more := queues[b].Broken - queues[a].Broken; more != 0 {
			return more
		}
		return strings.Compare(a, b)
	})
	var text strings.Builder
	for _, name := range names {
		fmt.Fprintf(&text, "%d of %d\t%s\n", queues[name].Broken, queues[name].Finished, name)
	}
	return []opilio.Report{{File: "broken-links.txt", Content: text.String()}}
}

// decodeMemory returns the counts of all queues. The memory is empty before the first batch.
func decodeMemory(memory []byte) map[string]queueCounts {
	queues := map[string]queueCounts{}
	if len(memory) > 0 {
		if err := json.Unmarshal(memory, &queues); err != nil {
			panic(fmt.Sprintf("cannot decode the memory of the last batch: %v", err))
		}
	}
	return queues
}

func row(event opilio.Finished) string {
	var text strings.Builder
	writer := csv.NewWriter(&text)
	// Writing to a strings.Builder cannot fail.
	_ = writer.Write([]string{strconv.Itoa(event.Status), event.URI, event.Via})
	writer.Flush()
	return strings.TrimSuffix(text.String(), "\n")
}

func init() {
	opilio.Export(opilio.About{
		Name:    "broken-links",
		Version: "0.1.0",
		Summary: "Lists broken links and the pages that contain them.",
	}, settings{Ignore: []int{401, 403, 429}}, func(from settings) (*brokenLinks, []opilio.Fault) {
		return &brokenLinks{from}, nil
	})
}

func main() {}
