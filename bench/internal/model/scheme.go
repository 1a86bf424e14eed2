package model

import (
	"fmt"
	"slices"

	"github.com/goccl/goccl/bench/internal/prose"
)

// Call is one collective of a training step. Elements are those of the size column:
// of the vector, or of all ranks' parts together.
type Call struct {
	Op       string // as -op has it
	Elements int
}

// scheme is a way to spread training over ranks.
type scheme struct {
	name, help string
	layered    bool // it needs a transformer
	calls      func(m *Model, ranks, elem int) []Call
}

// The assumptions of a step, which bench prints: one sequence a rank, or per micro-batch; with tp, ulysses and ring
// one that all ranks share. Of F parameters on P ranks a rank sends in a step
//
//   - with ddp 2F(P-1)/P, an all-reduce; with zero1 and zero2 the same, a reduce-scatter and an
//     all-gather; with zero3 half
//     as much again (Rajbhandari et al., ZeRO, 2020, arXiv:1910.02054, section 7).
//
// With N tokens of h elements on P ranks a rank sends, forward in a layer,
//
//   - with tp 4Nh(P-1)/P, two all-reduces (Shoeybi et al., Megatron-LM, 2019, arXiv:1909.08053, section 3);
//   - with ulysses 4Nh/P by all-to-all, of which the part for itself stays: queries, keys, values and the output,
//     Nh/P each (Jacobs et al., DeepSpeed Ulysses, 2023, arXiv:2309.14509, "Communication Analysis");
//   - with ring 2Nh/P, a block of keys and one of values, to the next rank P-1 times (Liu, Zaharia and Abbeel, Ring
//     Attention, 2023, arXiv:2310.01889, section 3: blocks of c tokens, here N/P).
//
// With pp it sends Nh to the next stage for each micro batch, and as much back (Narayanan et al.,
// 2021, arXiv:2104.04473, section 3.2).
const (
	firstBucket  = 1 << 20  // bytes, of the first gradients that are ready
	bucket       = 25 << 20 // and of all others: torch.nn.parallel.DistributedDataParallel
	MicroBatches = 8        // of a pipeline's step
)

// schemes in the order of -h.
var schemes = []scheme{
	{"ddp", "gradients are averaged, in buckets", false, func(m *Model, _, elem int) []Call {
		return each("allreduce", m.Buckets(elem))
	}},
	{"zero1", "optimizer states are sharded: each rank gets the average of its shard, and parameters are gathered",
		false, sharded},
	{"zero2", "gradients, too, which changes no call", false, sharded},
	{"zero3", "parameters, too (FSDP): they are gathered layer by layer, forward and backward", false,
		func(m *Model, _, _ int) []Call {
			units := m.Units()
			calls := each("allgather", units)
			for _, n := range slices.Backward(units) {
				calls = append(calls, Call{"allgather", n}, Call{"reducescatter", n})
			}
			return calls
		}},
	{"tp", "each layer is cut (Megatron): its activations are summed twice forward, twice backward", true,
		func(m *Model, _, _ int) []Call {
			return repeat(4*m.Layers, Call{"allreduce", m.activations()})
		}},
	{"pp", "layers are spread: activations and their gradients go from stage to stage", true,
		func(m *Model, _, _ int) []Call {
			return repeat(2*MicroBatches, Call{"sendrecv", m.activations()})
		}},
	{"ulysses", "the sequence is cut: attention swaps it for heads, 4 times a layer and direction", true,
		func(m *Model, ranks, _ int) []Call {
			return repeat(8*m.Layers, Call{"alltoall", m.activations() / ranks})
		}},
	{"ring", "the sequence is cut: keys and values go round, and backward their gradients with them", true,
		func(m *Model, ranks, _ int) []Call {
			part := 2 * m.activations() / ranks
			forward := repeat(m.Layers*(ranks-1), Call{"sendrecv", part})
			return append(forward, repeat(m.Layers*(ranks-1), Call{"sendrecv", 2 * part})...)
		}},
}

// SchemeNames are the names that -plan takes.
func SchemeNames() []string { return prose.Names(schemes, func(s scheme) string { return s.name }) }

// schemeNamed is the scheme of that name, or the zero scheme.
func schemeNamed(name string) (s scheme) {
	if i := slices.Index(SchemeNames(), name); i >= 0 {
		s = schemes[i]
	}
	return s
}

// Step lists the collectives of one training step on so many ranks, for parameters
// and activations of elem bytes each.
func (m *Model) Step(scheme string, ranks, elem int) ([]Call, error) {
	s := schemeNamed(scheme)
	switch {
	case s.calls == nil:
		return nil, fmt.Errorf("no such scheme as %s", scheme)
	case s.layered && m.Layers == 0:
		return nil, fmt.Errorf("%s has no transformer layers; the schemes for it are ddp, zero1, zero2 and zero3", m.Name)
	}
	return s.calls(m, ranks, elem), nil
}

// Explain says what a scheme does.
func Explain(scheme string) string { return schemeNamed(scheme).help }

// activations are those of one sequence.
func (m *Model) activations() int { return m.Sequence * m.Hidden }

// Buckets are the gradients of elem bytes each in the order in which they are ready,
// the last first, in buckets that are full when they reach their size, as PyTorch's are.
func (m *Model) Buckets(elem int) (elements []int) {
	limit, n := firstBucket, 0
	for _, t := range slices.Backward(m.Tensors) {
		n += t.Elements()
		if n*elem >= limit {
			elements, n, limit = append(elements, n), 0, bucket
		}
	}
	if n > 0 {
		elements = append(elements, n)
	}
	return elements
}

// Units are what is gathered at a time with sharded parameters: a block each, and
// what comes before and after them; without blocks, buckets in forward order.
func (m *Model) Units() (elements []int) {
	if m.Layers == 0 {
		elements = m.Buckets(4)
		slices.Reverse(elements)
		return elements
	}
	layer, n := -1, 0
	for _, t := range m.Tensors {
		if t.Layer != layer && n > 0 {
			elements, n = append(elements, n), 0
		}
		layer = t.Layer
		n += t.Elements()
	}
	return append(elements, n)
}

// sharded is what a step moves where each rank updates its part of the parameters.
func sharded(m *Model, _, elem int) []Call {
	return append(each("reducescatter", m.Buckets(elem)), each("allgather", m.Buckets(elem))...)
}

func each(op string, elements []int) []Call {
	var calls []Call
	for _, n := range elements {
		calls = append(calls, Call{op, n})
	}
	return calls
}

func repeat(n int, c Call) []Call { return slices.Repeat([]Call{c}, n) }
