// Package links carries messages between two ranks: through pipes in the memory of a host, and over
// TCP between hosts. [Links] run the schedules of internal/algo, for Comms that span hosts, and
// point-to-point calls.
//
// # Schedules: a collective across hosts
//
// RunRemote asks algo.Choose for an algorithm, takes this rank's schedule (kept per algorithm, kind
// and root) and runs its steps. A step starts its messages, and move pushes all of them until the
// step is done. A message is a 120-byte header with a CRC, the record and hash of the call and the
// record of the call before, then the payload. Over TCP, header and payload go in one system call.
// AllReduce and Reduce send the operand from the caller's memory until a part of it has been
// written. Bytes that are to be reduced are combined as they arrive, at most 256 KiB at a time.
//
// Each Comm has its own links. Sharing a connection among Comms would let a Comm that is not being
// read block another. Links are made on first use, so their number depends on the algorithm: see
// docs/costs.md.
//
// # Pairs: Send, Recv and SendRecv on one host
//
// A pipe is a ring of records. A record is a cache line: a flag (number and hash), what the two
// calls are compared by, and up to 16 bytes of data. More data lie in the pipe's ring or in its
// chunks. A rank that both sends and receives fills the chunk that it has just read. A large
// message may stay where it is: its record offers it, the receiver copies it from there, and says
// so by compare-and-swap of a word. A sender whose call fails takes the offer back by the same
// word. So a receiver never accepts memory that its owner may have changed. Streams (groups,
// CheckStrict, collectives across hosts, Shrink) use the same records, so both forms can follow
// each other on a link.
package links
