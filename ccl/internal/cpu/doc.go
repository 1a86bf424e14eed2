// Package cpu is the engine of package ccl that needs nothing but processors. It runs collectives
// over shared memory inside a host, over TCP between hosts, and on plain memory between ranks of
// one process. It is also the control plane of every other engine: it keeps the order of calls, and
// notices mismatches, deaths and timeouts.
//
// A [Comm] is one rank's end of a communicator. It puts together the parts that do the work. Each
// part is a package that imports only packages of the list above it. The parts lie in the Comm, and
// none is embedded; each has pointers to those that it uses, and keeps what it looks at in every
// call. So a call seldom goes from pointer to pointer: that takes 1.1 to 2 times as long.
//
//	tuning  thresholds and sizes
//	call    a call, its record, its vectors, its fault
//	group   what all ranks of a Comm agreed on when it was made
//	region  the layout of what the ranks of one Comm on one host share
//	plane   the control plane: joining, waiting, failing, watching
//	reach   the memory of the other ranks of the host
//	rounds  collectives among the ranks of one host
//	links   messages: pipes, TCP, schedules between hosts, point-to-point calls
//	shrink  the agreement of Shrink
//
// Here are what a Comm does with them: [Comm.Run], the calls of a library that the Comm watches
// over ([Beside]), [Join], [Split], [Shrink] and [Comm.Close].
package cpu
