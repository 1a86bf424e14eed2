//go:build rccl && cgo && linux

package native

func init() { compiledIn = append(compiledIn, rccl) }
