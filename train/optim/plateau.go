package optim

import (
	"fmt"
	"math"
)

// Plateau lowers the learning rate where a loss gets no better, as torch's ReduceLROnPlateau. Its fields are all its
// state: a run that goes on from a checkpoint keeps them with it. All ranks give it the same loss.
type Plateau struct {
	// Factor is what the rate is multiplied by: from 0 to 1, and less than 1; 0 is .1.
	Factor float64
	// Patience is how many losses in a row may be no better before the rate is lowered with the next.
	Patience int
	// Threshold is by what part of the best loss a better one is less; 0 is 1e-4, and Zero is 0.
	Threshold float64
	// Cooldown is how many losses after a lower rate do not count.
	Cooldown int
	// Floor is the least rate.
	Floor float64

	// Best is the best loss so far, and Seen whether there was one.
	Best float64
	Seen bool
	// Bad is how many losses in a row were no better, and Cooling how many more do not count.
	Bad, Cooling int
}

// Next is the rate after a loss, where rate is the one before it. A loss that is infinite or no number is no better.
func (p *Plateau) Next(rate, loss float64) (float64, error) {
	factor, threshold := or(p.Factor, .1), or(p.Threshold, 1e-4)
	if !(factor > 0 && factor < 1 && threshold >= 0) || math.IsNaN(p.Floor) {
		return rate, fmt.Errorf("optim: Plateau with Factor %v, Threshold %v, Floor %v: Factor is from 0 to 1 and neither, "+
			"Threshold is not negative, Floor is a number", factor, threshold, p.Floor)
	}
	below := math.Inf(1)
	if p.Seen {
		below = p.Best * (1 - threshold)
	}
	if loss < below && !math.IsInf(loss, -1) {
		p.Best, p.Seen, p.Bad = loss, true, 0
	} else {
		p.Bad++
	}
	if p.Cooling > 0 {
		p.Cooling--
		p.Bad = 0
	}
	if p.Bad <= p.Patience {
		return rate, nil
	}
	p.Bad, p.Cooling = 0, p.Cooldown
	lower := max(rate*factor, p.Floor)
	if rate-lower <= 1e-8 { // as torch: no rate that is lower by nothing
		return rate, nil
	}
	return lower, nil
}
