//go:build !wasip1

package opilio

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// In native tests there is no host. Log lines go to standard error, counters are ignored, and tables come from the test.
func writeLog(level uint8, line string) {
	fmt.Fprintf(os.Stderr, "%s: %s\n", [...]string{"debug", "info", "warn", "error"}[level], line)
}

func addToCounter(string, uint64) {}

func find(table, key string) (Row, bool) { return TestTables[table].Find(key) }

// TestTable is a host table in a test.
type TestTable struct {
	// Kind is "surt-prefixes" or "key-values".
	Kind string `json:"kind"`
	Rows []Row  `json:"rows"`
}

// TestTables are the tables of Find in a test. A component uses the host's tables instead.
var TestTables map[string]TestTable

// Find returns the row with the longest prefix of the key in a table of SURT prefixes, and the last row with the same key
// in other tables.
func (t TestTable) Find(key string) (Row, bool) {
	var best Row
	ok := false
	for _, row := range t.Rows {
		matches := row.Key == key
		if t.Kind == "surt-prefixes" {
			matches = strings.HasPrefix(key, row.Key) && len(row.Key) >= len(best.Key)
		}
		if matches {
			best, ok = row, true
		}
	}
	return best, ok
}

// TestPlugin is an exported plugin for tests.
type TestPlugin struct {
	About
	// Configure returns the configured plugin (the *P of Export), or the faults in the settings.
	Configure func(settings string) (any, []Fault)
}

// TestPlugins returns the plugins that this program exports.
func TestPlugins() []TestPlugin {
	plugins := make([]TestPlugin, 0, len(exported))
	for _, one := range exported {
		plugins = append(plugins, TestPlugin{one.about, one.configure})
	}
	return plugins
}

// Verdict returns the parts of a ruling: the contract's word, the time until a retry, and the reason.
func (r Ruling) Verdict() (word string, after time.Duration, reason string) {
	return [...]string{"accept", "reject", "pass", "unchanged", "retry"}[r.verdict], r.after, r.reason
}
