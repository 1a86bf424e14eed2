package harness

import (
	"time"

	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/ccl"
)

// overlapped is how many iterations -overlap takes.
const overlapped = 20

// overlap measures how much of a call is hidden behind compute of about the same
// length on the rank's own goroutine, as that of a training step's backward pass.
func (t *test[T]) overlap(us float64) (*report.Overlap, error) {
	rounds := calibrate(time.Duration(us * 1e3))
	var v [3]float64 // the call alone, compute alone, both
	for range overlapped {
		for k := range v {
			if err := ccl.Barrier(t.ctx, t.s.world); err != nil {
				return nil, err
			}
			start := time.Now()
			var w ccl.Work
			if k != 1 {
				w = t.put(t.nextBuffers())
			}
			if k != 0 {
				compute(rounds)
			}
			if k != 1 {
				if err := w.Wait(t.ctx); err != nil {
					return nil, err
				}
			}
			v[k] += time.Since(start).Seconds() * 1e6 / overlapped
		}
	}
	if err := ccl.AllReduce(t.ctx, t.s.world, v[:], v[:], ccl.Avg); err != nil {
		return nil, err
	}
	return report.NewOverlap(report.Nanos(v[0]), report.Nanos(v[1]), report.Nanos(v[2])), nil
}

// calibrate is how many rounds of compute take about d.
func calibrate(d time.Duration) int {
	rounds := 1
	for {
		start := time.Now()
		compute(rounds)
		took := time.Since(start)
		if took > 200*time.Microsecond || took >= d {
			return max(int(float64(rounds)*float64(d)/float64(max(took, 1))), 1)
		}
		rounds *= 2
	}
}

// work is small enough for the first-level cache: what is measured is that a core is
// taken, not that memory is.
var work [1024]float32

// compute is arithmetic that the compiler must not leave out. Ranks that share a
// process have cores of their own to do it on, but not memory: each takes a copy.
func compute(rounds int) float32 {
	local := work
	for range rounds {
		for i := range local {
			local[i] = local[i]*0.999 + 0.5
		}
	}
	return local[rounds%len(local)]
}
