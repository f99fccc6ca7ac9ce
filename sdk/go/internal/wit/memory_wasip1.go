package wit

import (
	"runtime"
	"runtime/debug"
	"unsafe"
)

// gcBegins is how much memory is used before any is collected. A call has its memory for itself and leaves it to the
// host, so most never collect; those that need much still fit the host's 64 MiB.
const gcBegins = 40 << 20

func init() {
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(gcBegins)
}

// What the host has written and nobody refers to yet.
var incoming runtime.Pinner

// Unpin is called once the bindings refer to what came in.
func Unpin() { incoming.Unpin() }

// The host asks for memory for what it hands over; it never gives any back or wants more of the same.
//
//go:wasmexport cabi_realloc
func cabiRealloc(_ unsafe.Pointer, _, align, size uintptr) unsafe.Pointer {
	return Allocate(&incoming, size, align)
}
