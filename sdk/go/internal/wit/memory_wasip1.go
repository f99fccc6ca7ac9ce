package wit

import (
	"runtime"
	"runtime/debug"
	"unsafe"
)

// gcBegins is the memory size in bytes at which garbage collection begins. Most calls end before, and the host discards their
// memory. Calls that need more still fit into the host's limit of 64 MiB.
const gcBegins = 40 << 20

func init() {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(gcBegins)
}

// incoming pins memory that the host has written, until the bindings refer to it.
var incoming runtime.Pinner

// Unpin is called when the bindings refer to the incoming values.
func Unpin() { incoming.Unpin() }

// cabiRealloc allocates memory for the values that the host passes. The host never frees or enlarges an allocation.
//
//go:wasmexport cabi_realloc
func cabiRealloc(_ unsafe.Pointer, _, align, size uintptr) unsafe.Pointer {
	return Allocate(&incoming, size, align)
}
