// Package native carries out calls with the vendors' libraries: NCCL, RCCL, oneCCL. It opens them
// at run time, so a program that was built on a machine without any of them runs there too, and
// says what is missing. The tags nccl, rccl and oneccl choose which are compiled in, in any
// combination.
//
// What NCCL and RCCL share is in files of their subjects: vendor.go is one library to know about,
// load.go opens it and devices.go has its devices for bench, end.go is one rank's end of a
// communicator, start.go makes it and close.go ends it, issue.go hands over calls, compose.c makes
// those that a library lacks, mark.go follows streams, span.go takes the device's times, staged.go
// takes host memory through the device.
// nccl.go and rccl.go are what differs. The calls themselves are in include/gccl.h.
//
// A group of calls is one call into C. A call allocates nothing, and no communicator has a thread.
//
// # Choices
//
// Libraries are opened at run time and never linked. A linked binary needs the vendor's SDK where
// it is built, and does not start where the library is absent. A table of functions and constants
// in a header of our own (include/), filled by dlopen, makes one binary that is built without an
// SDK, starts anywhere, says what is missing, and uses newer functions where they exist.
// test/vendor compares the tables with the real headers of several versions.
//
// The CPU engine is the control plane. A call that a library carries out, by cpu.Beside, has
// its place in the order, its record and its hash, and the monitor watches it. So a
// mismatch, a death, a timeout or a late rank is named as on the CPU, where the library alone would
// hang.
//
// All ranks agree on the library. Once the CPU engine's Comm stands, each rank opens the library. A
// verdict of O(log n) small collectives turns what failed on one rank into an error on all.
// Versions are compared and rank 0's id is broadcast. A barrier follows, since the library's start
// may block a rank that others still need.
//
// A group is one cgo call. A cgo call costs about 35 ns, a hop to a locked thread 14 to 80 us. The
// calls of one communicator are made one at a time, under a lock of its own; communicators share no
// lock. Events are recorded by Wait, Test and the watch (every 10 ms), never per call, and never on
// a stream that is being captured.
//
// Communicators block. With blocking=0, NCCL makes a thread for each call from 2.23.4 on
// (ncclGroupEndInternal, src/group.cc); up to 2.25 that call belongs to its thread, which Go lends
// to others. A communicator that blocks waits for its peers inside the library while connections
// are made, and ncclCommAbort would free memory under such a call. So:
//
//   - A communicator starts on a goroutine of its own, which frees what arrives late.
//   - A first collective of its kind and size is made once all ranks have met on the control plane.
//   - Abort waits a second for a call to return, then tries ncclCommRevoke (2.28.7), and otherwise
//     gives the communicator up and says so. It frees nothing that is in use.
//   - Where the library shrinks (ncclCommShrink, 2.27) and revokes, Abort only revokes. Shrink makes the
//     survivors' communicator from what is left, if all ranks can, and Close frees the parent. The flag
//     NCCL_SHRINK_ABORT is not used: it would synchronize inside the caller.
//   - The two ranks of a first message do not meet: the message waits inside for its peer, on a
//     goroutine of its own (Connect), while the control plane looks at it.
//
// Split makes an id of its own. ncclCommSplit waits inside the parent, which could not be aborted
// then, and stores the child even after a failure (ncclCommInitRankFunc, src/init.cc). With splitShare
// a child would also have its parent's abortFlag (ncclCommSplit), so a Comm that fails would end the
// kernels of Comms that have not: their streams would pass with undefined data, and no error.
//
// Every C function chooses its device and leaves it set. The library puts back the device that was
// current (groupLaunch, src/group.cc). On a thread without a device that would be device 0, and a
// context there takes some hundred MiB.
//
// Ranks of a host close together or apart. From 2.31 on ncclCommFinalize and ncclCommDestroy wait
// for all ranks of the host. Package ccl has these tell each other that they close. Where all do,
// both are called; otherwise each rank waits for what it has issued, and calls ncclCommAbort, which
// waits for nobody. A start that has failed is aborted and never revoked: it may lack what
// ncclCommRevoke uses.
//
// The device's own times are for OnCall alone. Two events around what is handed over take them, and
// are asked once a mark is passed, so nothing waits. Without OnCall no such event is made. The
// flight recorder has the host's times.
//
// Graphs are watched. A stream of cuda or rocm tells its observers of captures. A launch of a graph
// with calls of a Comm counts as work of that stream, so one that hangs is a timeout. A mark is set
// in CUDA's relaxed mode, which breaks no capture. On HIP any query of an event breaks a capture,
// so no mark is set while a stream is being captured.
//
// Aborted calls also complete on the stream; their buffers are undefined. So a mark counts only
// while the Comm has not failed.
package native

import _ "github.com/goccl/goccl/include" // gccl.h, so that go mod vendor takes it along
