// Package call describes one call as all parts of the CPU engine see it: its kind and arguments,
// the record that ranks compare, the vectors and blocks that it works on, and the fault with which
// it may end.
//
// # The order of calls
//
// A call is hashed: its kind, type, operator, count and root, and the counts of V kinds. [Comm.Run]
// mixes that hash with the hashes of all collectives before it. So one 32-bit number tells whether
// two ranks have made the same calls. Point-to-point calls are hashed per pair of ranks, and use
// links of their own.
package call
