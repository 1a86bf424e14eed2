package mat

import "time"

// Peak is how many floating-point operations a second one core makes in registers alone, by the widest multiply-add
// that Mul uses: the best of a few runs of half a millisecond.
func Peak() float64 {
	best := 0.
	for range 8 {
		const k = 1 << 14
		start := time.Now()
		lanes := peak(k)
		best = max(best, 2*12*k*float64(lanes)/time.Since(start).Seconds())
	}
	return best
}

// specPeak makes k times 12 multiplications and additions.
func specPeak(k int) int {
	var acc [12]float32
	x := float32(k & 1)
	for range k {
		for i := range acc {
			acc[i] += float32(x * x)
		}
	}
	if fold((*[step]float32)(append(acc[:], 0, 0, 0, 0))) < 0 {
		panic("mat: a sum of squares is negative")
	}
	return 1
}
