// Package ccl moves and reduces arrays across the ranks of a parallel job.
//
// A [Comm] is an ordered set of ranks. Host slices go through the generic
// functions ([AllReduce], [Broadcast], ...), which run on the calling goroutine
// and return when this rank's part is done and its results are right. Work that
// should overlap with the caller goes through a [Queue], whose methods return at
// once.
//
// Every rank must make the same calls on a Comm in the same order ([Send] and
// [Recv] are ordered per pair of ranks); a Comm and its Queues are used by one goroutine at a
// time, a [Work] by any. Breaking the first rule is reported as [ErrMismatch] on all
// ranks, most often in the call itself. A rank that receives nothing in a call need not
// wait for the others there: it gets the error from a later call, Wait, Err or Close. Such
// ranks are the root of Broadcast and Scatter, the others in Reduce and Gather, and the
// sender. With Options.Check at [CheckStrict] they wait, and get it at once. Breaking the
// second rule is a data race, which -race reports; without it, the second goroutine most
// often gets [ErrArgument], which says so.
//
// What is no slice of numbers, such as a struct, a string or a map, goes by [BroadcastValue],
// [AllGatherValues] and their relatives.
//
// A context ends a blocking call and a queued one differently. One that ends during a
// blocking call or Split fails the Comm, on all ranks: the call was under way, and
// others count on it. One that ends during [Work.Wait] ends the waiting alone: the call goes
// on, and its slices stay in use. So a program that wants to end everything early calls
// [Comm.Abort], and cancels its contexts for its own goroutines. The context of a request
// belongs in no call: docs/service.md has a server.
//
// The function that makes a Comm defers [Comm.Finish], which closes it and, after an error or a
// panic, tells the other ranks why.
//
// A Comm fails once and for good, and only for ranks of its own: after one is
// lost, every pending and later call on every survivor returns the same cause in
// an [*Error]. A child that was forked without exec, as C code may do, is no rank: its
// calls return [ErrClosed], and the parent's Comm goes on.
package ccl
