// Package oneccl is the engine over Intel's oneCCL, compiled in by the tag oneccl and opened at run
// time.
//
// oneCCL has two plugins. The one for SYCL devices takes device memory, in the order of a SYCL
// queue; the one for CPUs takes host memory. Which of them a process uses is decided when the
// library is opened: the devices that package xpu sees, or, if there are none, the CPU.
//
// What shapes this package:
//
//   - oneCCL cannot be interrupted, so its calls are made by a goroutine of their own, the worker.
//     A call that has to be given up leaves that goroutine inside the library; until it comes back,
//     if ever, no other call can be made in the process.
//
//   - Two communicators at once give wrong results or crash, so there is one worker, and it is the
//     lock.
//
//   - Two ranks in one process hang, so there is one rank per process.
//
//   - After a group, GroupEnd leaves host events that are not complete; and receives of a group are
//     carried out one after another. So no groups are used: messages are put into an order in which
//     none waits for ever.
//
//   - A communicator that was split does not know its rank, ignores the key and hangs on a negative
//     one. So a split is a new communicator with an id of its own.
//
//   - A destroy waits for all ranks and blocks every other call. So closed communicators are freed
//     at the next start, when all ranks say that they have closed them.
//
//   - Messages are ordered by pairs: in round (a+b) mod n ranks a and b exchange theirs.
package oneccl

import _ "github.com/goccl/goccl/include" // goneccl.h, so that go mod vendor takes it along
