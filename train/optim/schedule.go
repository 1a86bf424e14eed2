package optim

import "math"

// A schedule gives the learning rate of a step, counted from 1. All of them rise linearly to peak
// at step warm; before step 1 they are 0 if there is a warm-up. They are functions of the step
// alone, so a run that goes on from a checkpoint needs no state of them.

// warming is the rate during the warm-up, and whether step belongs to it.
func warming(step, warm int, peak float64) (rate float64, is bool) {
	if warm > 0 && step <= warm {
		return peak * float64(max(step, 0)) / float64(warm), true
	}
	return 0, false
}

// falling is how much of the way from step from to step to lies behind step: from 0 to 1.
func falling(step, from, to int) float64 {
	switch {
	case step >= to:
		return 1
	case step <= from:
		return 0
	}
	return float64(step-from) / float64(to-from)
}

// Constant stays at peak.
func Constant(step, warm int, peak float64) float64 {
	if rate, is := warming(step, warm, peak); is {
		return rate
	}
	return peak
}

// Linear falls along a line from peak to floor at step total, and stays there.
func Linear(step, warm, total int, peak, floor float64) float64 {
	return WSD(step, warm, total, total, peak, floor)
}

// Cosine falls along half a cosine from peak to floor at step total (Loshchilov and Hutter 2017), and stays there.
func Cosine(step, warm, total int, peak, floor float64) float64 {
	if rate, is := warming(step, warm, peak); is {
		return rate
	}
	return between(peak, floor, falling(step, max(warm, 0), total))
}

// WSD is warm-up, stable, decay (Hu et al. 2024, MiniCPM): it stays at peak, and falls along a line
// to floor over the last steps, decay of them, before step total. A run can be made longer as long
// as it has not begun to decay.
func WSD(step, warm, decay, total int, peak, floor float64) float64 {
	if rate, is := warming(step, warm, peak); is && step < total {
		return rate
	}
	x := falling(step, max(total-max(decay, 0), warm, 0), total)
	return float64(peak*(1-x)) + float64(floor*x)
}

// InverseSqrt falls as one over the square root of the step (Vaswani et al. 2017): to half of peak at 4*warm. Without a
// warm-up it begins with peak at step 1.
func InverseSqrt(step, warm int, peak float64) float64 {
	if rate, is := warming(step, warm, peak); is {
		return rate
	}
	warm = max(warm, 1)
	return peak * math.Sqrt(float64(warm)/float64(max(step, warm)))
}

// Stairs multiplies the rate by factor after every so many steps from the end of the warm-up on, as torch's StepLR.
func Stairs(step, warm, every int, peak, factor float64) float64 {
	if rate, is := warming(step, warm, peak); is {
		return rate
	}
	done := max(step-max(warm, 0)-1, 0)
	if every < 1 {
		return peak
	}
	return peak * power(factor, done/every)
}

// OneCycle rises along half a cosine from start at step 1 to peak at step rise, and falls along another
// to floor at step total (Smith and Topin 2018), as torch's OneCycleLR, whose defaults are rise =
// .3*total, start = peak/25 and floor = start/1e4.
func OneCycle(step, rise, total int, start, peak, floor float64) float64 {
	switch {
	case step >= total:
		return floor
	case step <= rise:
		return between(start, peak, falling(step, 1, rise))
	}
	return between(peak, floor, falling(step, rise, total))
}

// Restarts falls along half a cosine from peak towards floor again and again: over first steps, and
// then each time over times as many (Loshchilov and Hutter 2017), as torch's
// CosineAnnealingWarmRestarts.
func Restarts(step, warm, first, times int, peak, floor float64) float64 {
	if rate, is := warming(step, warm, peak); is {
		return rate
	}
	done, period := max(step-max(warm, 0)-1, 0), max(first, 1)
	if times <= 1 {
		done %= period
	}
	for done >= period {
		done -= period
		if period > math.MaxInt/times { // no step is so late
			period = math.MaxInt
			break
		}
		period *= times
	}
	return between(peak, floor, float64(done)/float64(period))
}

// between goes from a to b along half a cosine, x of the way from 0 to 1.
func between(a, b, x float64) float64 {
	if x == 1 {
		return b
	}
	return b + float64((a-b)*(0.5+float64(0.5*cosPi(x))))
}

// cosPi is the cosine of pi times x, which is from 0 to 1: sin(z) by its series, with z = pi (1/2 - x). math.Cos may be
// fused on some machines.
func cosPi(x float64) float64 {
	z := math.Pi * (0.5 - x)
	sum, term, zz := z, z, z*z
	for k := 2; k < 24; k += 2 {
		term = -term * zz / float64(k*(k+1))
		sum += float64(term)
	}
	return sum
}
