//go:build !wasip1

package wit

// Unpin has no effect without a host.
func Unpin() {}
