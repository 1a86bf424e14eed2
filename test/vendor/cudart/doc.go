// Package cudart checks include/gdev.h against the CUDA and HIP runtimes' own headers, and that the real CUDA runtime
// loads and says that there is no GPU. fetch.sh gets both, pinned by version. `./...` leaves out a directory of
// this name, so these tests run where they are named: go test ./test/vendor/...
package cudart
