// Package distill has the loss by which a small model learns a large one's probabilities (Hinton et
// al. 2015), over a vocabulary that may be split between ranks as package tp splits it.
package distill

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"slices"

	"github.com/goccl/goccl/ccl"
)

// Group is what the ranks of a vocabulary do together. Its fields are the same on all of them.
type Group struct {
	// Comm has the ranks between which the vocabulary is split; one rank has all of it.
	Comm *ccl.Comm
	// Temperature divides the logits of both; 0 is 1.
	Temperature float64
	// Words is the size of the vocabulary without padding, of the whole. 0: none is padding.
	Words int
	// Divisor is what the weighted sum of the losses is divided by; 0: the weights. Where no row counts the loss is 0.
	Divisor float64

	scratch []float64
}

// Loss returns the Kullback-Leibler divergence of the student's probabilities from the teacher's, times
// the square of the temperature, as kl_div(log_softmax(logits/t), softmax(teacher/t))*t*t of torch: the
// mean over rows, a weight for each. It sets dlogits, which may be logits, to the gradient. Each row of
// logits and of the teacher's is this rank's part of the vocabulary, which begins with the entry first.
//
// It makes two all-reduces, of two numbers a row and of three, and never moves the logits. What differs
// between ranks and must not, an error of one, and sizes that do not fit end the Comm.
func Loss[T ~float32 | ~float64](ctx context.Context, g *Group, dlogits, logits, teacher []T, weights []float64,
	first int) (float64, error) {
	if g == nil || g.Comm == nil {
		return 0, errors.New("distill: a Group without a Comm")
	}
	t, rows, n := g.Temperature, len(weights), len(logits)
	if t == 0 {
		t = 1
	}
	switch {
	case n%max(rows, 1) != 0 || rows == 0 && n != 0 || len(dlogits) != n || len(teacher) != n || first < 0:
		return 0, g.refuse(fmt.Errorf("distill: %d logits, %d of the teacher and %d gradients for %d weights, from entry %d", n,
			len(teacher), len(dlogits), rows, first))
	case !(t > 0 && t <= math.MaxFloat64) || g.Words < 0 || !(g.Divisor >= 0):
		return 0, g.refuse(fmt.Errorf("distill: a Temperature of %v, %d Words, a Divisor of %v: none is negative, and the first is finite",
			t, g.Words, g.Divisor))
	}
	width := n / max(rows, 1)
	words := width
	if g.Words > 0 {
		words = min(max(g.Words-first, 0), width)
	}
	g.scratch = slices.Grow(g.scratch[:0], 5*rows+2)[:5*rows+2]
	most, sums := g.scratch[:2*rows+2], g.scratch[2*rows+2:]
	for i := range rows {
		a, b := math.Inf(-1), math.Inf(-1)
		for j := i * width; j < i*width+words; j++ {
			a, b = max(a, float64(logits[j])), max(b, float64(teacher[j]))
		}
		most[2*i], most[2*i+1] = a, b
	}
	same := most[2*rows:]
	same[0] = terms(weights, t, float64(g.Words), g.Divisor)
	same[1] = -same[0]
	if err := g.reduce(ctx, most, ccl.Max); err != nil {
		return 0, err
	}
	if same[0] != -same[1] {
		return 0, g.refuse(errors.New("distill: ranks differ in their weights, Temperature, Words or Divisor"))
	}
	below := func(i, j int) (student, of float64) { // how far below the greatest of row i
		return (float64(logits[j]) - most[2*i]) / t, (float64(teacher[j]) - most[2*i+1]) / t
	}
	for i := range rows {
		row := sums[3*i : 3*i+3]
		clear(row)
		for j := i * width; j < i*width+words; j++ {
			s, q := below(i, j)
			e := math.Exp(q)
			row[0] += math.Exp(s)
			row[1] += e
			if e != 0 { // a word that the teacher never says adds nothing, wherever the student has it
				row[2] += float64(e * (q - s))
			}
		}
	}
	if err := g.reduce(ctx, sums, ccl.Sum); err != nil {
		return 0, err
	}
	count := g.Divisor
	if count == 0 {
		for _, w := range weights {
			count += w
		}
	}
	loss := 0.
	for i, w := range weights {
		out, row := dlogits[i*width:(i+1)*width], sums[3*i:3*i+3]
		if w == 0 || count == 0 {
			clear(out)
			continue
		}
		if row[1] == 0 {
			return 0, g.refuse(fmt.Errorf("distill: row %d has no words on any rank", i))
		}
		w /= count
		loss += float64(w * t * t * (row[2]/row[1] + math.Log(row[0]) - math.Log(row[1])))
		for j := range words {
			s, q := below(i, i*width+j)
			out[j] = T(w * t * (math.Exp(s)/row[0] - math.Exp(q)/row[1]))
		}
		clear(out[words:])
	}
	return loss, nil
}

// terms is a number for what all ranks must have alike, of 52 bits, which a float64 has.
func terms(weights []float64, more ...float64) float64 {
	h := fnv.New64a()
	for _, list := range [][]float64{more, weights} {
		for _, x := range list {
			var b [8]byte
			binary.LittleEndian.PutUint64(b[:], math.Float64bits(x))
			h.Write(b[:])
		}
	}
	return float64(h.Sum64() >> 12)
}

// refuse fails the Comm with err, what is wrong with a call here: the other ranks may have begun theirs.
func (g *Group) refuse(err error) error {
	g.Comm.Abort(err)
	return err
}

func (g *Group) reduce(ctx context.Context, x []float64, op ccl.Op) error {
	if err := ccl.AllReduce(ctx, g.Comm, x, x, op); err != nil {
		return fmt.Errorf("distill: %w", err)
	}
	return nil
}
