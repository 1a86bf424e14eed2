package history

import (
	"math"
	"strconv"
)

// tick is a place on an axis and what stands beside it.
type tick struct {
	at   float64
	text string
}

// ticks are the multiples of a round number (1, 2 or 5 times a power of ten) from lo to hi: n at
// most, and no fewer than two fifths of that unless the numbers leave no room for them. whole takes
// whole numbers alone.
func ticks(lo, hi float64, n int, whole bool) (list []tick) {
	least := hi/float64(n) - lo/float64(n) // which is finite where hi-lo is not
	if whole {
		least = max(least, 1)
	}
	step := round(least)
	const near = 1e-9 // of a step: what rounding may take
	first := math.Ceil(lo/step - near)
	if !(step > 0) || math.IsInf(step, 0) || math.Abs(first) > 1<<52 { // no float64 tells such neighbours apart
		return []tick{{lo, label(lo, 0)}}
	}
	for i := range n + 1 {
		at := (first + float64(i)) * step
		if at-near*step > hi || len(list) == n {
			break
		}
		list = append(list, tick{min(max(at, lo), hi), label(at, step)})
	}
	return list
}

// round is the least of 1, 2, 5 times a power of ten that is not less than x.
func round(x float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(x)))
	for _, f := range []float64{1, 2, 5} {
		if f*power >= x*(1-1e-9) {
			return f * power
		}
	}
	return 10 * power
}

// label writes x with the decimals that multiples of step have.
func label(x, step float64) string {
	if x == 0 {
		return "0"
	}
	const wide, fine = 1e7, 1e-5
	if step == 0 || math.Abs(x) >= wide || step < fine {
		return strconv.FormatFloat(x, 'g', 4, 64)
	}
	decimals := max(0, -int(math.Floor(math.Log10(step)+1e-9)))
	return strconv.FormatFloat(x, 'f', decimals, 64)
}
