package opilio

import "fmt"

// Debug writes a line of level debug to the plugin's log. Debug, Info, Warn and Error format the line like fmt.Sprintf.
func Debug(format string, values ...any) { writeLog(0, fmt.Sprintf(format, values...)) }

// Info writes a line of level info.
func Info(format string, values ...any) { writeLog(1, fmt.Sprintf(format, values...)) }

// Warn writes a line of level warn.
func Warn(format string, values ...any) { writeLog(2, fmt.Sprintf(format, values...)) }

// Error writes a line of level error.
func Error(format string, values ...any) { writeLog(3, fmt.Sprintf(format, values...)) }

// Count adds n to the plugin's counter of this name.
func Count(name string, n uint64) { addToCounter(name, n) }

// Row is a row of a host table.
type Row struct{ Key, Value string }

// Find returns the row for a key in a host table. The profile gives tables their names.
func Find(table, key string) (Row, bool) { return find(table, key) }
