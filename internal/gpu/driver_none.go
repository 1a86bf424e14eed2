//go:build !(linux && cgo && (nccl || rccl))

package gpu

// open needs C.
func open(r *Runtime) (driver, error) { return nil, r.notBuilt() }
