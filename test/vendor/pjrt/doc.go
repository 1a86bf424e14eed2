// Package pjrt checks include/gpjrt.h against pjrt_c_api.h. fetch.sh gets the header, and the
// plugins on which the tests of packages xla, xla/hlo and of examples/gpt2 run, pinned by version.
// `./...` leaves out a directory of this name's parent, so these tests run where they are named: go
// test ./test/vendor/pjrt
package pjrt
