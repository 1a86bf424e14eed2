//go:build !race && (nccl || rccl) && cgo && linux

package native

const raceEnabled = false
