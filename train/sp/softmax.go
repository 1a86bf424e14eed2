package sp

import "math"

// Softmax is a running softmax over blocks of keys (Milakov and Gimelshein 2018; Dao et al. 2022):
// what makes ring attention equal full attention, whatever the order of the blocks. Weights are
// computed in float64 and stored in float32. Its methods panic if a slice is shorter than its shape
// says, as indexing does.
type Softmax struct {
	// Max is the greatest score of each row so far, and Sum the sum of exp(score-Max).
	Max, Sum []float32
}

// NewSoftmax returns a Softmax of so many rows, which has seen no key.
func NewSoftmax(rows int) *Softmax {
	s := &Softmax{Max: make([]float32, rows), Sum: make([]float32, rows)}
	for i := range s.Max {
		s.Max[i] = float32(math.Inf(-1))
	}
	return s
}

// Add merges a block: scores, [rows][keys], become weights, by which the caller multiplies the block's values and adds
// them to out, [rows][dim]. Add rescales out for them. A score of -Inf is masked.
func (s *Softmax) Add(scores []float32, keys int, out []float32, dim int) {
	for i := range s.Max {
		row := scores[i*keys : (i+1)*keys]
		most := s.Max[i]
		for _, x := range row {
			most = max(most, x)
		}
		if math.IsInf(float64(most), -1) { // all is masked so far
			clear(row)
			continue
		}
		sum := 0.
		for j, x := range row {
			e := math.Exp(float64(x) - float64(most))
			row[j] = float32(e)
			sum += e
		}
		scale := math.Exp(float64(s.Max[i]) - float64(most))
		s.Max[i], s.Sum[i] = most, float32(float64(float64(s.Sum[i])*scale)+sum)
		if scale != 1 {
			for d := range dim {
				out[i*dim+d] *= float32(scale)
			}
		}
	}
}

// Finish divides out by the sums of weights: the result of attention. A row of which all is masked stays 0.
func (s *Softmax) Finish(out []float32, dim int) {
	for i, sum := range s.Sum {
		if sum == 0 {
			continue
		}
		for d := range dim {
			out[i*dim+d] /= sum
		}
	}
}

// Weights makes of scores, [rows][keys], the final weights, for the backward pass: exp(score-Max)/Sum.
func (s *Softmax) Weights(scores []float32, keys int) {
	for i := range s.Max {
		row := scores[i*keys : (i+1)*keys]
		if s.Sum[i] == 0 {
			clear(row)
			continue
		}
		for j, x := range row {
			row[j] = float32(math.Exp(float64(x)-float64(s.Max[i])) / float64(s.Sum[i]))
		}
	}
}
