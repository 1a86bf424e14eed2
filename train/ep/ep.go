// Package ep is expert parallelism: a layer of experts of which each token takes a few, spread over the
// ranks of a Comm (GShard, Lepikhin et al. 2021; Switch, Fedus et al. 2022). Each rank has Experts/Size
// of them, and all ranks have the router.
//
//	p, err := ep.Route(ctx, l, logits)     // chooses: an exchange of counts
//	rows, err := p.Dispatch(ctx, x)        // tokens go to their experts
//	for e := range p.Local() {
//		lo, hi := p.Rows(e)            // those of local expert e: run it on them
//	}
//	y, err := p.Combine(ctx, out)          // and come back, each times its weight
//	...
//	dout, err := p.CombineGrad(ctx, dy)
//	dx, err := p.DispatchGrad(ctx, drows)
//	dlogits := p.RouteGrad()
//
// Of each token and expert a row crosses twice forward and twice backward. The rows of an expert come by
// rank and then by token, which is the order that one rank has of all tokens: the sums over them, and so
// an expert's gradients, have the same bits on any number of ranks, as long as Capacity, which is of a
// rank's tokens, drops none. Average the experts' gradients over the ranks with the same experts alone
// (package mesh makes that Comm), and divide them by the number of ranks of l.Comm where a loss is a
// mean over ranks: an expert sums what all of these send.
//
// Tensor parallelism splits each expert as it splits an MLP: its ranks have the same tokens and logits,
// and what Combine, DispatchGrad and RouteGrad return is this rank's part of a sum over them. Divide
// Balance by their number, since each of them has the gradient of the auxiliary loss.
package ep

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/goccl/goccl/ccl"
)

// Float is what activations and gradients are made of.
type Float interface{ ~float32 | ~float64 }

// Scores are how logits become scores.
type Scores uint8

const (
	// Softmax is over all experts, as Switch, Mixtral and Qwen have it.
	Softmax Scores = iota
	// Sigmoid is of each expert alone, as DeepSeek-V3 has it.
	Sigmoid
)

// Layer is what the ranks of a Comm know of a layer of experts. Its fields are the same on all of them. A call that is
// wrong on some rank fails the Comm, so that all ranks have an error, with that rank's reason.
type Layer struct {
	// Comm has the ranks that share the experts; Experts is a multiple of their number.
	Comm *ccl.Comm
	// Experts is how many there are, Top of how many a token takes, and Width how many numbers a token has.
	Experts, Top, Width int
	// Scores are those of a token's experts, and its weights. Normalize divides the weights of a token by
	// their sum, as Mixtral does; Scale multiplies them then, 0 is 1.
	Scores    Scores
	Normalize bool
	Scale     float64
	// Capacity bounds the tokens of a rank that one expert takes to Capacity*tokens*Top/Experts, rounded
	// up: first choices come first, then tokens in order, and of what is more the token goes without. 0:
	// none is dropped.
	Capacity float64
	// Balance is the factor of the auxiliary loss of Switch (equation 4): Experts times the sum over experts of its share
	// of the choices times its mean probability, over the tokens of all ranks. It needs Softmax.
	Balance float64
	// Bias is added to an expert's score where experts are chosen, and not to its weight; nil: nothing. See Rebalance.
	Bias []float64
}

// local is how many experts each rank has.
func (l *Layer) local() int { return l.Experts / l.Comm.Size() }

// check says what is wrong with l.
func (l *Layer) check() error {
	switch {
	case l == nil || l.Comm == nil || l.Comm.Size() == 0:
		return errors.New("ep: a Layer without a Comm")
	case l.Experts < 1 || l.Experts%l.Comm.Size() != 0:
		return l.refuse("%d Experts on %d ranks: each has as many", l.Experts, l.Comm.Size())
	case l.Top < 1 || l.Top > l.Experts || l.Width < 1 || max(l.Experts, l.Width) > math.MaxInt32:
		return l.refuse("Top is %d of %d Experts, and Width %d", l.Top, l.Experts, l.Width)
	case l.Scores > Sigmoid:
		return l.refuse("Scores are Softmax or Sigmoid")
	case !(l.Capacity >= 0) || !(l.Balance >= 0) || math.IsInf(l.Capacity+l.Balance, 0) || l.Scale-l.Scale != 0:
		return l.refuse("Capacity is %v, Balance %v, Scale %v", l.Capacity, l.Balance, l.Scale)
	case l.Balance > 0 && l.Scores != Softmax:
		return l.refuse("Balance needs Softmax; with Sigmoid use Bias and Rebalance")
	case l.Bias != nil && len(l.Bias) != l.Experts:
		return l.refuse("%d numbers of Bias for %d Experts", len(l.Bias), l.Experts)
	}
	return nil
}

// refuse fails the Comm with what is wrong with a call here: the other ranks may have begun theirs.
func (l *Layer) refuse(format string, args ...any) error {
	err := fmt.Errorf("ep: "+format, args...)
	l.Comm.Abort(err)
	return err
}

// Rebalance changes a bias after a step by what loads say, how many tokens each expert took: by rate up
// where it was less than the mean, and down where it was more (Wang et al. 2024, as DeepSeek-V3 has it,
// with a rate of .001). Give it the sum of Pass.Loads over the micro batches of a step, and over the
// ranks that have the same experts.
func Rebalance(bias []float64, loads []int64, rate float64) error {
	if len(bias) != len(loads) {
		return fmt.Errorf("ep: a bias of %d experts, and loads of %d", len(bias), len(loads))
	}
	all := int64(0)
	for _, n := range loads {
		all += n
	}
	for e, n := range loads {
		switch over := n*int64(len(loads)) - all; {
		case over < 0:
			bias[e] += rate
		case over > 0:
			bias[e] -= rate
		}
	}
	return nil
}

// Pass is one batch of tokens on its way through a Layer, forward and backward. One goroutine uses it at a time.
type Pass[T Float] struct {
	l      *Layer
	tokens int
	scores []float64 // tokens x Experts
	chosen []int32   // tokens x Top: the experts, best first
	weight []float64 // tokens x Top: 0 of one that was dropped
	slot   []int     // tokens x Top: the place among the rows sent; -1: dropped
	way    traffic
	load   balance
	back   []T       // what experts made of the rows sent
	dw     []float64 // gradient of weight
}

// traffic says which rows are sent, and which come.
type traffic struct {
	sent   []int     // rows to each rank
	come   []int     // rows from each rank
	from   [][]int64 // by local expert, of each rank: rows
	start  []int     // of each local expert among its rows, and the end
	places []int     // of each row that came, by its place among those of its expert
}

// balance is how evenly the tokens of all ranks are spread over the experts.
type balance struct {
	rows  []int64   // of each expert
	share []float64 // of an expert among the choices; nil without Balance
	of    float64   // tokens
	aux   float64
}

// Route chooses the experts of tokens by the router's logits, a row of Experts for each. It makes an all-to-all of
// counts, and an all-reduce of numbers for each expert.
func Route[T Float](ctx context.Context, l *Layer, logits []T) (*Pass[T], error) {
	if err := l.check(); err != nil {
		return nil, err
	}
	if len(logits)%l.Experts != 0 {
		return nil, l.refuse("%d logits: a token has %d", len(logits), l.Experts)
	}
	p := &Pass[T]{l: l, tokens: len(logits) / l.Experts}
	p.score(logits)
	p.choose()
	if err := p.count(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// score computes the scores.
func (p *Pass[T]) score(logits []T) {
	p.scores = make([]float64, len(logits))
	for t := range p.tokens {
		in, out := logits[t*p.l.Experts:(t+1)*p.l.Experts], p.scores[t*p.l.Experts:(t+1)*p.l.Experts]
		if p.l.Scores == Sigmoid {
			for e, x := range in {
				out[e] = 1 / (1 + math.Exp(-float64(x)))
			}
			continue
		}
		most, sum := math.Inf(-1), 0.
		for _, x := range in {
			most = max(most, float64(x))
		}
		for e, x := range in {
			out[e] = math.Exp(float64(x) - most)
			sum += out[e]
		}
		for e := range out {
			out[e] /= sum
		}
	}
}

// choose takes the best experts of each token, of equal ones the first, and gives the places of each expert out.
func (p *Pass[T]) choose() {
	l, n := p.l, p.tokens*p.l.Top
	p.chosen, p.weight, p.slot = make([]int32, n), make([]float64, n), make([]int, n)
	taken := make([]bool, l.Experts)
	for t := range p.tokens {
		s, chosen := p.scores[t*l.Experts:(t+1)*l.Experts], p.chosen[t*l.Top:(t+1)*l.Top]
		clear(taken)
		sum := 0.
		for k := range chosen {
			best, most := -1, 0.
			for e, x := range s {
				if l.Bias != nil {
					x += l.Bias[e]
				}
				if !taken[e] && (best < 0 || x > most) {
					best, most = e, x
				}
			}
			taken[best], chosen[k] = true, int32(best)
			sum += s[best]
		}
		for k, e := range chosen {
			p.weight[t*l.Top+k] = l.weight(s[e], sum)
		}
	}
	room := n
	if l.Capacity > 0 {
		room = int(min(math.Ceil(l.Capacity*float64(n)/float64(l.Experts)), float64(n)))
	}
	rows := make([]int, l.Experts) // of each expert
	for k := range l.Top {         // first choices first
		for i := k; i < n; i += l.Top {
			e := p.chosen[i]
			if rows[e] < room {
				rows[e]++
			} else {
				p.slot[i], p.weight[i] = -1, 0
			}
		}
	}
	p.order(rows)
}

// order gives the rows that are sent their places: by expert, and of one expert by token.
func (p *Pass[T]) order(rows []int) {
	at, begin := 0, make([]int, len(rows))
	for e, n := range rows {
		begin[e] = at
		at += n
	}
	for i, e := range p.chosen {
		if p.slot[i] >= 0 {
			p.slot[i] = begin[e]
			begin[e]++
		}
	}
	p.load.rows = make([]int64, len(rows))
	for e, n := range rows {
		p.load.rows[e] = int64(n)
	}
}

// weight is that of an expert with that score, sum being the scores of the token's experts.
func (l *Layer) weight(score, sum float64) float64 {
	if l.Normalize && sum != 0 { // of scores that are all too small for a float64 each is 0
		score /= sum
	}
	if l.Scale != 0 {
		score *= l.Scale
	}
	return score
}
