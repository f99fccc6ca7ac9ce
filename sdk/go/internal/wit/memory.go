//go:build !wasip1

package wit

// Unpin has nothing to let go where there is no host.
func Unpin() {}
