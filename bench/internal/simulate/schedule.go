package simulate

// Ring is the all-reduce of Patarasuk and Yuan (2009): 2(n-1) steps, in each of which
// every rank passes a part of n to the next.
func Ring(n int) func(rank int) Schedule {
	return func(rank int) Schedule {
		next, prev := Move{(rank + 1) % n, 1 / float64(n)}, Move{(rank + n - 1) % n, 1 / float64(n)}
		return Schedule{2 * (n - 1), func(_ int, st *Step) {
			st.Send, st.Recv = append(st.Send, next), append(st.Recv, prev)
		}}
	}
}

// Doubling is recursive doubling, for powers of two: whole vectors are swapped with
// ranks at distances 1, 2, 4 and so on.
func Doubling(n int) func(rank int) Schedule {
	return func(rank int) Schedule {
		return Schedule{rounds(n), func(k int, st *Step) {
			peer := Move{rank ^ 1<<k, 1}
			st.Send, st.Recv = append(st.Send, peer), append(st.Recv, peer)
		}}
	}
}

// Halving is Rabenseifner's all-reduce (2004), for powers of two: halves of halves are
// swapped from the far ranks to the near, then put together on the way back.
func Halving(n int) func(rank int) Schedule {
	half := rounds(n)
	return func(rank int) Schedule {
		return Schedule{2 * half, func(k int, st *Step) {
			if k >= half {
				k = 2*half - 1 - k
			}
			peer := Move{rank ^ n>>(k+1), 1 / float64(int(2)<<k)}
			st.Send, st.Recv = append(st.Send, peer), append(st.Recv, peer)
		}}
	}
}

// Tree is the broadcast from rank 0 along a binomial tree.
func Tree(n int) func(rank int) Schedule {
	last := rounds(n)
	return func(rank int) Schedule {
		return Schedule{last, func(k int, st *Step) {
			switch bit := 1 << k; {
			case rank < bit && rank+bit < n:
				st.Send = append(st.Send, Move{rank + bit, 1})
			case rank >= bit && rank < 2*bit:
				st.Recv = append(st.Recv, Move{rank - bit, 1})
			}
		}}
	}
}

// rounds is the logarithm of n to the base of two, rounded up.
func rounds(n int) int {
	k := 0
	for 1<<k < n {
		k++
	}
	return k
}
