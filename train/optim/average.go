package optim

import "fmt"

// EMA moves average, the exponential moving average of parameters p over steps, towards p: average
// = decay*average + (1-decay)*p, each operation rounded. It is PyTorch's AveragedModel with
// get_ema_multi_avg_fn. An average that is laid out as a shard of package zero takes 1/ranks of the
// memory, is saved as any other state, and is what zero's Swap evaluates with.
//
// A step of 1 or more corrects the beginning, when the average holds little but its first value:
// the decay is then at most (1+step)/(10+step), as in TensorFlow and in Hugging Face's EMAModel. A
// step of 0 does not.
func EMA[T Float](decay float64, step int, average, p []T) error {
	switch {
	case !(decay >= 0 && decay <= 1):
		return fmt.Errorf("optim: EMA with a decay of %v; it is from 0 to 1", decay)
	case step < 0:
		return fmt.Errorf("optim: EMA in step %d; steps are counted from 1, and 0 does not correct", step)
	case len(average) != len(p):
		return fmt.Errorf("optim: EMA of %d parameters in an average of %d", len(p), len(average))
	}
	if step > 0 {
		decay = min(decay, float64(1+step)/float64(10+step))
	}
	keep, add := T(decay), T(1-decay)
	p = p[:len(average)]
	for i := range average {
		// Each product is converted, so that no compiler fuses it with the addition.
		average[i] = T(keep*average[i]) + T(add*p[i])
	}
	return nil
}
