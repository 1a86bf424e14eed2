package agree

// set is of ranks, a bit each: every process of a large job has some.
type set []uint64

func setFor(size int) set { return make(set, (size+63)/64) }

func (s set) has(r int) bool { return s[r/64]>>(r%64)&1 != 0 }

func (s set) add(r int) { s[r/64] |= 1 << (r % 64) }
