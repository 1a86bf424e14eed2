// Package grads measures gradients for package history: the norm of each layer, and the gradient
// noise scale. Both are read where the gradients are at hand, and make one small all-reduce a step.
package grads

import (
	"cmp"
	"context"
	"fmt"
	"math"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/history"
)

// Float is what gradients are in.
type Float interface{ ~float32 | ~float64 }

// Squares is the sum of the squares of g, in float64.
func Squares[T Float](g []T) (sum float64) {
	for _, x := range g {
		sum += float64(float64(x) * float64(x))
	}
	return sum
}

// Norms adds up the squares of gradients by layer: of those that an update gets, or of parts of them.
//
//	err := m.Step(ctx, func(p zero.Piece, w, g []float32) error {
//		norms.Add(p.Unit, grads.Squares(g))
//		...
//	})
//	metrics, err := norms.Over(ctx, metricsComm)
//
// After the first step nothing is allocated.
type Norms struct {
	squares []float64
	metrics []history.Metric
}

// NewNorms is for layers of these names; the metric of each is "norm/NAME".
func NewNorms(names ...string) *Norms {
	n := &Norms{squares: make([]float64, len(names))}
	for _, name := range names {
		n.metrics = append(n.metrics, history.Metric{Name: "norm/" + name})
	}
	return n
}

// Add counts squares of a layer. There must be such a layer.
func (n *Norms) Add(layer int, squares float64) { n.squares[layer] += squares }

// Over sums over the ranks of c, each of which has added other parts, and returns the norm of each
// layer, the same on all ranks; the next step begins with zeros. It is collective. What several
// ranks hold whole, as at zero's stage 0, one of them adds; where all ranks have all, c is nil. The
// metrics are valid until the next Over.
func (n *Norms) Over(ctx context.Context, c *ccl.Comm) ([]history.Metric, error) {
	if c != nil {
		if err := ccl.AllReduce(ctx, c, n.squares, n.squares, ccl.Sum); err != nil {
			return nil, fmt.Errorf("grads: %w", err)
		}
	}
	for i, x := range n.squares {
		n.metrics[i].Value = math.Sqrt(x)
	}
	clear(n.squares)
	return n.metrics, nil
}

// Noise estimates the simple gradient noise scale (McCandlish et al. 2018, appendix A.1): the
// variance of one sample's gradient over the square of the gradient. A batch much smaller than that
// wastes steps, and one much larger wastes data. Its zero value is ready once Ranks and Samples are
// set.
type Noise struct {
	// Ranks is how many average their gradients, at least 2, and Samples is how many are behind one
	// rank's: rows, or tokens. The scale is in the same unit.
	Ranks, Samples int
	// Keep is how much of the averages is kept from step to step, since one step's estimate is rough; 0 is .95.
	Keep float64

	signal, variance float64 // averages of |G|^2 and of the trace of the covariance
	begun            bool
	own              [1]float64
}

// Over takes a step: own is the square of the norm of this rank's gradient, before the ranks of c
// have averaged theirs, and whole that of the average. It returns the scale so far, the same on all
// ranks: NaN where the averages do not make sense yet, which a signal below 0 does not. It is
// collective.
func (n *Noise) Over(ctx context.Context, c *ccl.Comm, own, whole float64) (float64, error) {
	n.own[0] = own
	if err := ccl.AllReduce(ctx, c, n.own[:], n.own[:], ccl.Sum); err != nil {
		return 0, fmt.Errorf("grads: %w", err)
	}
	n.Add(n.own[0]/float64(c.Size()), whole)
	return n.Scale(), nil
}

// Add takes a step without a Comm: small is the mean over the ranks of the squares of the norms of
// their gradients, and whole the square of the norm of the mean gradient.
func (n *Noise) Add(small, whole float64) {
	b, B := float64(n.Samples), float64(float64(n.Samples)*float64(n.Ranks))
	signal := (float64(B*whole) - float64(b*small)) / (B - b)
	variance := (small - whole) / (1/b - 1/B)
	if finite := signal + variance; math.IsNaN(finite) || math.IsInf(finite, 0) { // a step that is skipped
		return
	}
	keep := cmp.Or(n.Keep, .95)
	n.begun = true // from 0, which is as much too little for both averages: their ratio is right from the first step on
	n.signal = float64(keep*n.signal) + float64((1-keep)*signal)
	n.variance = float64(keep*n.variance) + float64((1-keep)*variance)
}

// Scale is the noise scale so far: the ratio of the averages.
func (n *Noise) Scale() float64 {
	if !n.begun || n.signal <= 0 || n.variance < 0 {
		return math.NaN()
	}
	return n.variance / n.signal
}
