package ddp

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
)

// Join lets ranks train together that have different numbers of batches, or batches of different
// sizes: PyTorch's Join. A rank that has no more takes part with gradients of zeros until all are
// done, so that every rank makes the same calls:
//
//	for {
//		total, err := j.Next(ctx, len(batch))        // of all ranks
//		if err != nil || total == 0 { break }
//		loss := sumOfLosses(batch) * j.Weight()      // 0 of an empty batch, and so are its gradients
//		...                                          // Ready and Wait, or the loop of package zero
//	}
//
// With Weight the averages over the ranks are those over all samples of the step, however they are
// spread. Join serves package zero as well as a Reducer. It makes one all-reduce of 8 bytes a step,
// which waits for earlier calls on its Comm: a Comm of its own lets the gradients of the step
// before go on.
type Join struct {
	c     *ccl.Comm
	total [1]int
}

// NewJoin returns a Join of the ranks of c.
func NewJoin(c *ccl.Comm) (*Join, error) {
	if c == nil {
		return nil, errors.New("ddp: NewJoin: the Comm is nil")
	}
	return &Join{c: c}, nil
}

// Next begins a step in which this rank has so many samples, or tokens, and returns how many all
// ranks have: 0 when all are done, on all ranks in the same step.
func (j *Join) Next(ctx context.Context, samples int) (total int, err error) {
	if samples < 0 {
		err := fmt.Errorf("ddp: Join: a step with %d samples", samples)
		j.c.Abort(err) // the others wait for this rank's number
		return 0, err
	}
	j.total[0] = samples
	if err := ccl.AllReduce(ctx, j.c, j.total[:], j.total[:], ccl.Sum); err != nil {
		return 0, fmt.Errorf("ddp: Join: %w", err)
	}
	return j.total[0], nil
}

// Weight is what the sum of a rank's losses is multiplied by in this step, so that the average over
// the ranks is the mean over the samples of all: the number of ranks, divided by that of samples.
// With Options.Sum it is divided by the number of ranks.
func (j *Join) Weight() float64 {
	if j.total[0] == 0 {
		return 0
	}
	return float64(j.c.Size()) / float64(j.total[0])
}
