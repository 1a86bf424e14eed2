package gpt

// recomputed are the inputs of blocks whose activations are computed again for the backward pass:
// activation checkpointing (Chen et al. 2016), of each block. A Net then has the activations of one
// block, and of the others their inputs.
type recomputed[T Float] struct {
	inputs map[int][][]T // by micro batch: of the blocks that have had no backward pass
	spare  [][]T
}

// Recompute makes n keep the inputs of blocks only, before its first Forward. Backward computes
// each block once more, with the same exchanges as Forward has, so the bits are the same.
func (n *Net[T]) Recompute() { n.again = &recomputed[T]{inputs: map[int][][]T{}} }

// lightly is block, of which only the input is kept.
func (n *Net[T]) lightly(u int, p [][]T, micro int, x []T) error {
	r := n.again
	var in []T
	if k := len(r.spare); k > 0 {
		in, r.spare = r.spare[k-1], r.spare[:k-1]
	} else {
		in = make([]T, n.Len())
	}
	copy(in, x)
	r.inputs[micro] = append(r.inputs[micro], in)
	err := n.block(u, p, micro, x)
	of := n.acts.of[micro]
	last := len(of) - 1
	n.acts.free, n.acts.of[micro] = append(n.acts.free, of[last]), of[:last]
	return err
}

// restore makes the activations of the last block of the micro batch that has had no backward pass.
func (n *Net[T]) restore(u int, p [][]T, micro int) error {
	r := n.again
	last := len(r.inputs[micro]) - 1
	in := r.inputs[micro][last]
	r.inputs[micro] = r.inputs[micro][:last]
	r.spare = append(r.spare, in)
	return n.block(u, p, micro, in)
}

// forget drops the inputs of a micro batch.
func (r *recomputed[T]) forget(micro int) {
	r.spare = append(r.spare, r.inputs[micro]...)
	r.inputs[micro] = r.inputs[micro][:0]
}

// Activations is how many elements n holds of activations from the forward to the backward pass,
// but for what an Attention keeps.
func (n *Net[T]) Activations() (elements int) {
	count := func(a *act[T]) {
		for _, x := range [][]T{a.ln1, a.xh1, a.rs1, a.qkv, a.att, a.y, a.ln2, a.xh2, a.rs2, a.h, a.s, a.g} {
			elements += len(x)
		}
	}
	for _, list := range n.acts.of {
		for _, a := range list {
			count(a)
		}
	}
	for _, a := range n.acts.free {
		count(a)
	}
	for _, h := range n.head {
		elements += len(h.ln) + len(h.xh) + len(h.rs) + len(h.d)
	}
	if n.again != nil {
		for _, list := range n.again.inputs {
			elements += len(list) * n.Len()
		}
		elements += len(n.again.spare) * n.Len()
	}
	return elements
}
