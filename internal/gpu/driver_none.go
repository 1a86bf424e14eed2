//go:build !(linux && cgo && (nccl || rccl))

package gpu

// open needs C.
func open(r *Runtime) (Driver, error) { return nil, r.notBuilt() }
