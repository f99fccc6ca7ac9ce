package wit

import (
	"runtime"
	"runtime/debug"
	"unsafe"
)

// gcBegins is the size at which garbage collection begins. Most calls never reach it, and the host discards their memory.
// Calls that need more still fit into the host's limit of 64 MiB.
const gcBegins = 40 << 20

func init() {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(gcBegins)
}

// Pins memory that the host has written until the bindings refer to it.
var incoming runtime.Pinner

// Unpin is called when the bindings refer to the incoming values.
func Unpin() { incoming.Unpin() }

// The host allocates memory for the values that it passes. It never frees or enlarges an allocation.
//
//go:wasmexport cabi_realloc
func cabiRealloc(_ unsafe.Pointer, _, align, size uintptr) unsafe.Pointer {
	return Allocate(&incoming, size, align)
}
