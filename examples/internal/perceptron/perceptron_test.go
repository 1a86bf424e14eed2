package perceptron

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The gradient is the slope of the loss.
func TestBackward(t *testing.T) {
	net, batch := New(), Samples(32)
	loss := func() float32 {
		g := make([]float32, len(net.Weights)+1)
		net.Backward(g, batch)
		return g[len(net.Weights)]
	}
	grad := make([]float32, len(net.Weights)+1)
	net.Backward(grad, batch)
	const h = 1e-2
	for i := range net.Weights {
		w := net.Weights[i]
		net.Weights[i] = w + h
		up := loss()
		net.Weights[i] = w - h
		down := loss()
		net.Weights[i] = w
		require.InDelta(t, (up-down)/(2*h), grad[i], 0.02, "weight %d", i)
	}
}
