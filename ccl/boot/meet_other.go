//go:build !linux

package boot

// meetLocally is false: without Linux's abstract sockets each rank connects to
// rank 0 itself.
const meetLocally = false
