// Package native carries out calls with the vendors' libraries: NCCL, RCCL, oneCCL. It opens them at
// run time, so a program that was built on a machine without any of them runs there too, and says
// what is missing. The tags nccl, rccl and oneccl choose which are compiled in, in any combination.
//
// What NCCL and RCCL share is in files of their subjects: vendor.go is one library to know about and
// load.go opens it, end.go is one rank's end of a communicator, start.go makes it and close.go ends it, issue.go hands over calls, compose.c
// makes those that a library lacks, mark.go follows streams, staged.go takes host memory through the
// device. nccl.go and rccl.go are what differs. The calls themselves are in include/gccl.h.
//
// A group of calls is one call into C. A call allocates nothing, and no communicator has a thread.
package native

import _ "github.com/goccl/goccl/include" // gccl.h, so that go mod vendor takes it along
