package main

import (
	"math"
	"math/rand/v2"
)

// hidden is the number of units of the hidden layer.
const hidden = 16

// network is a perceptron of two inputs, one hidden layer and one output: what is
// the sign of the product of the inputs? No straight line divides that plane.
type network struct {
	weights []float32 // for each hidden unit: two of its inputs, its bias, its output; then the output's bias
}

type sample struct{ x, y, label float32 }

func newNetwork() *network {
	rnd := rand.New(rand.NewPCG(1, 1))
	n := &network{weights: make([]float32, 4*hidden+1)}
	for i := range n.weights {
		n.weights[i] = rnd.Float32()*2 - 1
	}
	return n
}

// samples generates n of them, the same on every rank.
func samples(n int) []sample {
	rnd := rand.New(rand.NewPCG(2, 2))
	s := make([]sample, n)
	for i := range s {
		s[i].x, s[i].y = rnd.Float32()*2-1, rnd.Float32()*2-1
		if s[i].x*s[i].y > 0 {
			s[i].label = 1
		}
	}
	return s
}

// backward adds the samples' gradients to grad, and their loss to its last element.
func (n *network) backward(grad []float32, batch []sample) {
	var act [hidden]float32
	bias := len(n.weights) - 1
	for _, s := range batch {
		out := n.weights[bias]
		for j := range act {
			w := n.weights[4*j:]
			act[j] = float32(math.Tanh(float64(w[0]*s.x + w[1]*s.y + w[2])))
			out += w[3] * act[j]
		}
		p := 1 / (1 + math.Exp(-float64(out)))
		want := float64(s.label)
		grad[bias+1] -= float32(want*math.Log(p) + (1-want)*math.Log(1-p)) // cross entropy
		d := float32(p - want)
		grad[bias] += d
		for j, a := range act {
			w, g := n.weights[4*j:], grad[4*j:]
			back := d * w[3] * (1 - a*a)
			g[0] += back * s.x
			g[1] += back * s.y
			g[2] += back
			g[3] += d * a
		}
	}
}

// descend moves the weights against the gradient.
func (n *network) descend(grad []float32, rate float32) {
	for i := range n.weights {
		n.weights[i] -= rate * grad[i]
	}
}
