// Package nccl checks include/gccl.h against the headers of NCCL and the declarations of RCCL. fetch.sh gets both, and
// NCCL's libraries, pinned by version; package native's tests load these. `./...` leaves out a directory of this
// name, so these tests run where they are named: go test ./test/vendor/...
package nccl
