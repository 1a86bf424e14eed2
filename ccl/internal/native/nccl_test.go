//go:build nccl && cgo && linux

package native

func init() { compiledIn = append(compiledIn, nccl) }
