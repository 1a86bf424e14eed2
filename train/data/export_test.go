package data

// Repeats is how often the cipher runs for an item of n, on average over the first ones.
func Repeats(n, items int) float64 {
	p := newPermutation(n, 5)
	runs := 0
	for i := range min(items, n) {
		x := uint64(i)
		for runs++; ; runs++ {
			if x = p.once(x); x < p.n {
				break
			}
		}
	}
	return float64(runs) / float64(min(items, n))
}
