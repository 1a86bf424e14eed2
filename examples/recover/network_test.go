package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The gradient is the slope of the loss.
func TestBackward(t *testing.T) {
	net, batch := newNetwork(), samples(32)
	loss := func() float32 {
		g := make([]float32, len(net.weights)+1)
		net.backward(g, batch)
		return g[len(net.weights)]
	}
	grad := make([]float32, len(net.weights)+1)
	net.backward(grad, batch)
	const h = 1e-2
	for i := range net.weights {
		w := net.weights[i]
		net.weights[i] = w + h
		up := loss()
		net.weights[i] = w - h
		down := loss()
		net.weights[i] = w
		require.InDelta(t, (up-down)/(2*h), grad[i], 0.02, "weight %d", i)
	}
}
