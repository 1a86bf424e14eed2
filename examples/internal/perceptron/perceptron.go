// Package perceptron is the network that the examples dataparallel and recover train, and its data:
// arithmetic on slices, which knows no Comm.
package perceptron

import (
	"math"
	"math/rand/v2"
)

// hidden is the number of units of the hidden layer.
const hidden = 16

// Network is a perceptron of two inputs, one hidden layer and one output: what is
// the sign of the product of the inputs? No straight line divides that plane.
type Network struct {
	Weights []float32 // for each hidden unit: two of its inputs, its bias, its output; then the output's bias
}

// Sample is a point and what the network is to say of it.
type Sample struct{ X, Y, Label float32 }

// New returns a network with the same random weights on every rank.
func New() *Network {
	rnd := rand.New(rand.NewPCG(1, 1))
	n := &Network{Weights: make([]float32, 4*hidden+1)}
	for i := range n.Weights {
		n.Weights[i] = rnd.Float32()*2 - 1
	}
	return n
}

// Samples generates n of them, the same on every rank.
func Samples(n int) []Sample {
	rnd := rand.New(rand.NewPCG(2, 2))
	s := make([]Sample, n)
	for i := range s {
		s[i].X, s[i].Y = rnd.Float32()*2-1, rnd.Float32()*2-1
		if s[i].X*s[i].Y > 0 {
			s[i].Label = 1
		}
	}
	return s
}

// Backward adds the samples' gradients to grad, and their loss to its last element.
func (n *Network) Backward(grad []float32, batch []Sample) {
	var act [hidden]float32
	bias := len(n.Weights) - 1
	for _, s := range batch {
		out := n.Weights[bias]
		for j := range act {
			w := n.Weights[4*j:]
			act[j] = float32(math.Tanh(float64(w[0]*s.X + w[1]*s.Y + w[2])))
			out += w[3] * act[j]
		}
		p := 1 / (1 + math.Exp(-float64(out)))
		want := float64(s.Label)
		grad[bias+1] -= float32(want*math.Log(p) + (1-want)*math.Log(1-p)) // cross entropy
		d := float32(p - want)
		grad[bias] += d
		for j, a := range act {
			w, g := n.Weights[4*j:], grad[4*j:]
			back := d * w[3] * (1 - a*a)
			g[0] += back * s.X
			g[1] += back * s.Y
			g[2] += back
			g[3] += d * a
		}
	}
}

// Descend moves the weights against the gradient.
func (n *Network) Descend(grad []float32, rate float32) {
	for i := range n.Weights {
		n.Weights[i] -= rate * grad[i]
	}
}
