// Package fit finds the latency and the bandwidth of links from a curve that bench has
// measured, and says from them what other jobs would take.
//
// The model is Hockney's (1994): a message of m bytes takes alpha + beta m, and a
// collective takes as many of them, one after another, as its algorithm says.
package fit

import (
	"math/bits"
	"strings"
)

// Shape is how an algorithm spends its time.
type Shape struct {
	Messages float64 // between hosts, one after another
	Volume   float64 // that they carry, in units of the vector
	Part     float64 // of the vector, that one message is
}

// shapeOf is the shape of the CPU engine's algorithms (docs/costs.md), for n
// ranks on so many hosts. Messages within a host are not counted where there are
// several: what they take is added to those between hosts, so a fit holds for as many
// ranks on each host as were measured.
func shapeOf(op, algorithm string, n, hosts int) (Shape, bool) {
	name, _, _ := strings.Cut(algorithm, " ")
	far, crossing := n, 1.0 // what share of a ring's messages leave their host
	if hosts > 1 {
		far, crossing = hosts, float64(hosts)/float64(n)
	}
	rounds, others, part := float64(log2(far)), float64(n-1)/float64(n), 1/float64(n)
	ring := float64(n-1) * crossing
	twice := func(s Shape) Shape {
		if op == "allreduce" { // a reduction, and the way back
			return Shape{2 * s.Messages, 2 * s.Volume, s.Part}
		}
		return s
	}
	switch name {
	case "ring":
		return twice(Shape{ring, others, part}), true
	case "doubling", "hier":
		return Shape{rounds, rounds, 1}, true
	case "hier-ring": // of whose two levels only that between hosts counts
		return twice(Shape{float64(far - 1), float64(far-1) / float64(far), part}), true
	case "halving", "dissemination":
		if op == "barrier" {
			return Shape{rounds, 0, 0}, true
		}
		return twice(Shape{rounds, others, others / max(rounds, 1)}), true
	case "tree":
		if op == "gather" || op == "scatter" {
			return Shape{rounds, others, others / max(rounds, 1)}, true
		}
		return twice(Shape{rounds, rounds, 1}), true
	case "scatter-ring":
		return Shape{rounds + ring, 2 * others, part}, true
	case "pairwise":
		return Shape{float64(n - 1), others, part}, true
	case "direct":
		return Shape{1, others, part}, true
	}
	if op == "sendrecv" {
		return Shape{1, 1, 1}, true
	}
	return Shape{}, false
}

// log2 is rounded up.
func log2(n int) int { return bits.Len(uint(max(n, 1) - 1)) }
