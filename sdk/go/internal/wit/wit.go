// Package wit is the runtime of the generated bindings: options, results, handles, and memory for the host to write to.
package wit

import (
	"runtime"
	"unsafe"
)

const (
	OptionNone uint8 = iota
	OptionSome
)

// Option is a value that may be missing.
type Option[T any] struct {
	tag   uint8
	value T
}

func None[T any]() Option[T] { return Option[T]{} }

func Some[T any](value T) Option[T] { return Option[T]{OptionSome, value} }

func (o Option[T]) Tag() uint8 { return o.tag }

// Some returns the value. It panics if the value is missing.
func (o Option[T]) Some() T {
	if o.tag != OptionSome {
		panic("no value")
	}
	return o.value
}

// Get returns the value and true, or false if the value is missing.
func (o Option[T]) Get() (T, bool) { return o.value, o.tag == OptionSome }

const (
	ResultOk uint8 = iota
	ResultErr
)

// Unit is the type of results without a value.
type Unit = struct{}

// Result is a value or an error.
type Result[T, E any] struct {
	tag uint8
	ok  T
	err E
}

func Ok[T, E any](value T) Result[T, E] { return Result[T, E]{tag: ResultOk, ok: value} }

func Err[T, E any](problem E) Result[T, E] { return Result[T, E]{tag: ResultErr, err: problem} }

func (r Result[T, E]) Tag() uint8 { return r.tag }

func (r Result[T, E]) Ok() T { return r.ok }

func (r Result[T, E]) Err() E { return r.err }

// Handle is a handle of a resource of the host. It is 0 after Take.
type Handle struct{ value int32 }

func MakeHandle(value int32) *Handle { return &Handle{value} }

// Use returns the handle. It panics after Take.
func (h *Handle) Use() int32 {
	if h.value == 0 {
		panic("a document, visit, page or queue is used after the call that it belongs to")
	}
	return h.value
}

// Take returns the handle. The resource cannot be used any more.
func (h *Handle) Take() int32 {
	value := h.Use()
	h.value = 0
	return value
}

// TakeOrNil is like Take, but returns 0 if the handle was taken before.
func (h *Handle) TakeOrNil() int32 {
	value := h.value
	h.value = 0
	return value
}

func (h *Handle) Set(value int32) { h.value = value }

// Allocate returns memory that does not move until the pinner releases it. The element type determines the alignment.
func Allocate(pinner *runtime.Pinner, size, align uintptr) unsafe.Pointer {
	if size == 0 {
		return nil
	}
	var pointer unsafe.Pointer
	if align > 4 {
		pointer = unsafe.Pointer(unsafe.SliceData(make([]uint64, (size+7)/8)))
	} else {
		pointer = unsafe.Pointer(unsafe.SliceData(make([]uint32, (size+3)/4)))
	}
	pinner.Pin(pointer)
	return pointer
}
