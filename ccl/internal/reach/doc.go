// Package reach gets at the memory of the other ranks of a host: in place, where all can touch it,
// or by reading it from another process. A [Reach] knows what its rank may touch, and says so while
// it does.
//
// # Whose memory
//
// Other processes only read ordinary slices. Memory that other ranks touch by address (goroutine
// ranks), or write into (MakeSlice), is made safe when a call fails: the call returns when nobody
// touches it any more. A rank of another process may have been stopped while it wrote. After 10 ms
// the owner replaces the pages that belong to the result alone by new ones at the same address.
// Everything else in the slice stays as it is, and shared. For that reason ranks never write into
// the first and last page of each other's results where those pages hold something else: the owner
// reduces these edges itself, or, among many ranks, copies them from staging memory.
//
// # What counts
//
// The owner of ordinary memory does not wait for ranks that read it when its call fails: it may
// write there at once. So what a rank has read counts only if nobody had given up by then.
// [Reach.Read] alone reads memory of other ranks, and looks at the abort word after the reader has
// used it: test/imports checks that no other function can.
//
// # Memory that only its owner may read
//
// The kernel lets no other process read some memory: that of memfd_secret(2), and what drivers map.
// A rank whose read is refused asks the owner, which waits in the same call until all have read,
// and copies what is asked for into memory that both have mapped.
package reach
