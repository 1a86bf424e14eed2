package boot

// meetLocally says whether the ranks of a host can meet at a socket that never
// leaves it: an abstract one, which leaves no file behind, in Linux's namespace of
// the network; there the kernel also says whose the other end is.
const meetLocally = true
