// Package rounds has the collectives among the ranks of one host. A [Team] is a rank that posts and awaits rounds.
//
// # Rounds: a collective on one host
//
// If all ranks of the Comm are on one host, RunLocal runs rounds. Each rank has slots in the
// region: 32 with two ranks, 64 with up to 8, fewer with many. In a round a rank writes its payload into its slot, then
// the slot's flag: the number of the round and the hash of the call. It waits for the flags of the
// ranks whose data it needs, and reads their payloads straight into the caller's memory, or reduces
// from there. A flag of this round with another hash is a mismatched call, found at no cost.
//
// A rank that posts a round has finished reading all rounds two before it. So a slot is free when
// every rank has posted the round depth-2 after it, and calls need no barrier between them.
//
// With two ranks the payload lies behind the flag. On AMD's CPUs, where both send 512 bytes or
// more, each writes its payload where it has read the last time, in its own slot and the other's in
// turn, and claims the lines that it reads: so each line travels once. With more ranks, a slot is
// one cache line: what does not fit beside the flag lies in the rank's ring, and the line says
// where. So a rank that only sends runs ahead of the others by all its slots, with payloads of up
// to a segment of the ring, or as far as the ring has room. Among 3 to 8 ranks that outnumber their
// cores, a Reduce of up to 512 KiB / n goes through these rings, and the root reduces all.
//
// What one of 3 to 8 ranks alone sends, in Broadcast and Scatter, lies there up to 32 KiB. On AMD's
// CPUs what is more than 2 KiB lies in another ring, which is larger than L2, in pieces of up to 32
// KiB: see sent.go. Two ranks always have that ring.
//
// All operands are reduced in rank order. TestPatternHolds proves the rounds of small calls for up to 128 ranks.
//
// A round takes 2 KiB of data (with 3 or 4 ranks 8 KiB, with 5 to 8 ranks 4 KiB, and 4 KiB in an
// AllReduce with two ranks unless the CPU is Intel's). Larger calls begin with an offer, in which
// each rank says where its memory lies. ways.go then chooses:
//
//	in place  all ranks can touch the memory: goroutine ranks, MakeSlice (on AMD's CPUs two ranks stage the smallest AllReduces)
//	read      process_vm_readv, where the kernel allows it and it pays; if it refuses some memory, the owner copies that
//	staged    through 4 slots of staging memory a rank, of at most 128 KiB each
//
// When staging, two ranks work one chunk ahead, and swap their slots at each use. With two ranks,
// in calls with a root, one sends and the other receives, as a pipeline, through the sender's ring
// or in chunks. Among three or more ranks, each reduces one part of a chunk and posts the result.
// In AllToAllV only the two ends of a message know its length, so each rank begins with a header of
// lengths. Where a slot has no room for them (more than 126 ranks), AllToAllV uses links.
//
// Memory of another process that is read again and again is collapsed into huge pages.
package rounds
