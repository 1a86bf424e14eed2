package harness

import (
	"errors"
	"time"

	"github.com/goccl/goccl/ccl"
)

// graph is calls that were captured from the stream of a device.
type graph struct {
	launch, close func() error
	last          ccl.Work // of the calls, to wait for
}

// loopOfGraph captures n iterations, launches them -G times, and tells how long one launch took.
func (t *test[T]) loopOfGraph(n int) (time.Duration, error) {
	g, err := t.capture(n, t.nextBuffers)
	if err != nil {
		return 0, err
	}
	// Capturing takes each rank its own time.
	if err := ccl.Barrier(t.ctx, t.s.world); err != nil {
		return 0, err
	}
	took, err := t.launch(g, t.s.o.Graph)
	if err != nil {
		return 0, err // what hangs is not closed: that would wait for it
	}
	return took / time.Duration(t.s.o.Graph), g.close()
}

// capture makes a graph of n iterations, on the sets that next gives.
func (t *test[T]) capture(n int, next func() *set[T]) (*graph, error) {
	var last ccl.Work
	launch, end, err := t.s.dev.Capture(func() error {
		for range n {
			last = t.put(next())
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &graph{launch, end, last}, nil
}

// launch launches g and waits for it, by the device's own clock.
func (t *test[T]) launch(g *graph, times int) (time.Duration, error) {
	return t.byClock(func() (ccl.Work, error) {
		for range times {
			if err := g.launch(); err != nil {
				return g.last, err
			}
		}
		return g.last, nil
	})
}

// captureOne makes the graph of one iteration on st, with -G.
func (t *test[T]) captureOne(st *set[T]) (err error) {
	if t.s.o.Graph > 0 && st.graph == nil {
		st.graph, err = t.capture(1, func() *set[T] { return st })
	}
	return err
}

// callAsTimed makes the calls of one iteration as they are timed: with -G as a graph.
func (t *test[T]) callAsTimed(st *set[T]) error {
	if t.s.o.Graph == 0 {
		return t.call(st)
	}
	if err := t.captureOne(st); err != nil {
		return err
	}
	_, err := t.launch(st.graph, 1)
	return err
}

// closeGraphs gives back the graphs of single iterations.
func (t *test[T]) closeGraphs() error {
	var errs []error
	for _, st := range t.sets {
		if st.graph != nil {
			errs = append(errs, st.graph.close())
		}
	}
	return errors.Join(errs...)
}
