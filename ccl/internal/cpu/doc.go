// Package cpu is the engine of package ccl that needs nothing but processors. It runs collectives
// over shared memory inside a host, over TCP between hosts, and on plain memory between ranks of
// one process. It is also the control plane of every other engine: it keeps the order of calls, and
// notices mismatches, deaths and timeouts.
//
// # Parts
//
//   - A job is what the ranks of one job in this process have in common: the clock, the monitor,
//     the TCP listener and the events.
//   - A site is this process's part of one host of the job: the host's memory and the control
//     plane. A process has one site, unless its ranks were told to act as several hosts.
//   - A host is the memory that the ranks of a host share: one memfd, or Go memory if the ranks are
//     in one process. It is cut into regions.
//   - A region is what the ranks of one Comm on one host share: the abort word, states, flags and
//     small payloads.
//   - A [Comm] is one rank's end of a communicator.
//   - A link is a rank's stream to and from one other rank: a pipe in shared memory, or a TCP
//     connection.
//   - The executor runs schedules of internal/algo over links, for Comms that span hosts.
//
// # The order of calls
//
// A call is hashed: its kind, type, operator, count and root, and the counts of V kinds. [Comm.Run]
// mixes that hash with the hashes of all collectives before it. So one 32-bit number tells whether
// two ranks have made the same calls. Point-to-point calls are hashed per pair of ranks, and use
// links of their own.
//
// # Rounds: a collective on one host
//
// If all ranks of the Comm are on one host, runLocal runs rounds. Each rank has slots in the
// region: 32 with two ranks, 8 with more. In a round a rank writes its payload into its slot, then
// the slot's flag: the number of the round and the hash of the call. It waits for the flags of the
// ranks whose data it needs, and reads their payloads straight into the caller's memory, or reduces
// from there. A flag of this round with another hash is a mismatched call, found at no cost.
//
// A rank that posts a round has finished reading all rounds two before it. So a slot is free when
// every rank has posted the round depth-2 after it, and calls need no barrier between them.
//
// A slot takes 2 KiB of data (with 3 or 4 ranks 8 KiB, with 5 to 8 ranks 4 KiB, and 4 KiB in an
// AllReduce of two ranks unless the CPU is Intel's). Larger calls begin with an offer, in which
// each rank says where its memory lies. ways.go then chooses:
//
//	in place  all ranks can touch the memory: goroutine ranks, MakeSlice
//	read      process_vm_readv, where the kernel allows it and it pays
//	staged    through 4 slots of staging memory a rank, of at most 128 KiB each
//
// When staging, two ranks work one chunk ahead, and swap their slots at each use, so that each
// cache line travels once. In calls with a root, one of two ranks sends and the other receives, as
// a pipeline. Among three or more ranks, each reduces one part of a chunk and posts the result. In
// AllToAllV only the two ends of a message know its length, so each rank begins with a header of
// lengths. Where a slot has no room for them (more than 126 ranks), AllToAllV uses links.
//
// Memory of another process that is read again and again is collapsed into huge pages.
//
// # Whose memory
//
// Other processes only read ordinary slices. Memory that other ranks touch by address (goroutine
// ranks), or write into (MakeSlice), is made safe when a call fails: the call returns when nobody
// touches it any more. A rank of another process may have been stopped while it wrote. After 10 ms
// the owner replaces the pages that belong to the result alone by new ones at the same address.
// Everything else in the slice stays as it is, and shared. For that reason ranks never write into
// the first and last page of each other's results where those pages hold something else: the owner
// copies these edges from staging memory.
//
// # Schedules: a collective across hosts
//
// runRemote asks algo.Choose for an algorithm, takes this rank's schedule (kept per algorithm, kind
// and root) and runs its steps. A step starts its messages, and move pushes all of them until the
// step is done. A message is a 96-byte header with a CRC, the record and hash of the call and the
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
//
// # Waiting
//
// Every wait ends in pause (wait.go), which looks for a failure, a closed peer, the end of the
// context and the timeout. A rank first looks again and again. Then it yields to other goroutines
// and processes, for 0.5 ms. Then it sleeps until the rank that it waits for rings its bell: a
// channel between goroutines, the kernel between processes. A wait for another host sleeps 20 to
// 500 microseconds at a time, on Linux by a kernel timer, since Go's timers count in milliseconds.
// Where yields have shown that programs compute on the same cores, a wait inside a host does not
// yield, but sleeps after some 25 microseconds (courtesy.go).
//
// Calls read no clock. The monitor stamps a coarse clock every 5 ms, and timeouts are measured by
// that. Without a call the monitor is idle, and the lowest bit of the clock says that it is late. A
// call that sees the bit reads the real clock and wakes the monitor.
//
// # Failure
//
// A failure is one event: the Comm, the rank at fault, the first cause and the call. Within a host
// it is appended to a log of 64 entries in shared memory. The monitor of every process reads the
// log every 5 ms; a waiting rank reads it when it sees the abort word. An entry that a living
// process has not read is not overwritten: its writer keeps the event until there is room. A slot
// whose writer was killed is passed over. Until the event comes, the abort word of a Comm says that
// it has failed.
//
// Between hosts events flood a tree and a ring of connections, at most seven per host, apart from
// all data connections. A rank proposes its event. The leader of the lowest host puts the proposals
// in order and commits them, so all ranks hear the same cause. Before it commits a mismatch it
// counts which ranks are on which side, since the odd rank may be the one that reports. A proposal
// without a decision within 150 ms, as in a partition, is believed by the ranks that hear of it.
//
// Each host is led by its lowest surviving rank. This follows from what all ranks have heard, so a
// successor needs no election: it dials the neighboring hosts, which accept it even if the news of
// its predecessor's end has not reached them.
//
// Sockets close late: Linux frees the memory of a dead process first, about 90 ms for each
// gigabyte. So a thread of each process holds a robust futex list with one word in shared memory,
// in which the kernel sets a bit at once. A stopped process does not die; its pulse, a counter in
// shared memory, stands still. Both are read by the monitor and cost a call nothing.
//
// Shrink runs the agreement of internal/agree over these connections.
//
// # How a job starts
//
// [Join] takes these steps, with n ranks, P processes and H hosts. An allgather goes through the
// bootstrap, which is not needed after Join has returned.
//
//  1. Allgather of a hello: version, the options that must agree, a random process id, what
//     identifies the host, and a seed, of which rank 0's names the job. A difference is an error
//     that names the rank and the option. Each rank contributes 64 bytes and its options as text.
//  2. Hosts are numbered in the order of their lowest ranks. In a host with several processes, the
//     one with the lowest rank makes a memfd and opens an abstract Unix socket whose name only the
//     job's ranks know. One byte a rank tells all whether it could.
//  3. The other processes receive the memfd there (SCM_RIGHTS). Both ends must belong to the same
//     user (SO_PEERCRED) and know what all ranks said in step 1. A process that finds nobody is on
//     another host.
//  4. Allgather of a verdict and, with several hosts, of the address and port where each process
//     listens: 7 bytes a rank (IPv4) or 19 (IPv6). Processes that could not share memory repeat
//     steps 2 to 4 once among themselves, then count as hosts of their own.
//  5. The control plane: the leader of host h connects to those of hosts (h-1)/2, 2h+1 and 2h+2,
//     and to two on either side of a ring. A rank that waits here tells rank 0, which reports a
//     lost rank at once.
//  6. With several hosts, allgather of the last verdict. All ranks get a Comm, or all an error.
//
// Split is three allgathers over the parent (16, 8 and 8 bytes a rank), the last one a verdict, and
// one new region per host and color. SplitWith begins with one more, of 48 bytes. Neither makes a
// connection.
//
// # Choices
//
// A memfd, passed by SCM_RIGHTS. A file in /dev/shm needs a name, survives a kill, and is absent or
// tiny in containers. A memfd is sealed against shrinking, so a peer cannot cause a fault, and
// regions are reserved with fallocate, so a full machine is an error and not a SIGBUS. A process
// that receives the descriptor is on the same host: that is the test, and not the names of hosts.
//
// HostID. Before that test, a host is identified by the kernel's boot id and the network namespace,
// which abstract sockets do not leave. GOCCL_HOSTID replaces both, so that one machine can act as
// several hosts.
//
// A tree and a ring between hosts. A mesh would be O(n) connections per rank. A center would make
// one rank special. A tree alone would be cut by a host that dies.
//
// Memory comes back. The memfd has a size of 1 TiB. A freed region is emptied and its offset is
// reused. The free ranges are words in shared memory, each changed by compare-and-swap, so a killed
// process loses at most one range. Other ranks unmap freed MakeSlice memory when they next map
// something. What a stopped rank may still write into is emptied, and its offset is not reused.
package cpu
