//go:build !wasip1

package opilio

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// Without a host, as in tests, lines go to standard error, counters nowhere, and tables are those that a test names.
func writeLog(level uint8, line string) {
	fmt.Fprintf(os.Stderr, "%s: %s\n", [...]string{"debug", "info", "warn", "error"}[level], line)
}

func addToCounter(string, uint64) {}

func find(table, key string) (Row, bool) { return TestTables[table].Find(key) }

// TestTable is a table of the host's, as tests have it.
type TestTable struct {
	// Kind is "surt-prefixes" or "key-values".
	Kind string `json:"kind"`
	Rows []Row  `json:"rows"`
}

// TestTables are those that Find finds in a test. A component has its host's.
var TestTables map[string]TestTable

// Find is the row with the longest prefix of the key, or the last with the key itself.
func (t TestTable) Find(key string) (Row, bool) {
	var found Row
	is := false
	for _, row := range t.Rows {
		fits := row.Key == key
		if t.Kind == "surt-prefixes" {
			fits = strings.HasPrefix(key, row.Key) && len(row.Key) >= len(found.Key)
		}
		if fits {
			found, is = row, true
		}
	}
	return found, is
}

// TestPlugin is an exported plugin, as tests ask for it.
type TestPlugin struct {
	About
	// Configure makes what is asked: the *P of its Export.
	Configure func(settings string) (any, []Fault)
}

// TestPlugins are those that this program exports.
func TestPlugins() []TestPlugin {
	made := make([]TestPlugin, 0, len(exported))
	for _, one := range exported {
		made = append(made, TestPlugin{one.about, one.configure})
	}
	return made
}

// Verdict has what a ruling says: the word of the contract, the time after which to try again, the reason.
func (r Ruling) Verdict() (word string, after time.Duration, reason string) {
	return [...]string{"accept", "reject", "pass", "unchanged", "retry"}[r.verdict], r.after, r.reason
}
