package opilio

import "fmt"

// Debug, Info, Warn and Error write a line for the operator, as fmt.Sprintf would make it.
func Debug(format string, values ...any) { writeLog(0, fmt.Sprintf(format, values...)) }

// Info writes a line.
func Info(format string, values ...any) { writeLog(1, fmt.Sprintf(format, values...)) }

// Warn writes a line.
func Warn(format string, values ...any) { writeLog(2, fmt.Sprintf(format, values...)) }

// Error writes a line.
func Error(format string, values ...any) { writeLog(3, fmt.Sprintf(format, values...)) }

// Count adds to one of the plugin's own counters.
func Count(name string, n uint64) { addToCounter(name, n) }

// Row of a table of the host's.
type Row struct{ Key, Value string }

// Find looks a key up in a table of the host's, which the profile names.
func Find(table, key string) (Row, bool) { return find(table, key) }
