package harness

import (
	"github.com/goccl/goccl/bench/internal/coll"
	"github.com/goccl/goccl/bench/internal/machine"
	"github.com/goccl/goccl/bench/internal/verify"
	"github.com/goccl/goccl/ccl"
)

// check makes one iteration whose results are known.
func (t *test[T]) check(f *found) error {
	st := t.turn()
	patterns := make([]*verify.Pattern, len(st.slots))
	for i, sl := range st.slots {
		t.s.seed++
		// Groups call at the same time, and each has inputs of its own.
		seed := t.s.seed + uint64(t.s.group)<<40
		p := &verify.Pattern{Type: ccl.TypeOf[T](), Op: t.op, Reduce: t.Reduces, Ranks: t.shape.Ranks, Seed: seed}
		t.parts(sl.dst, func(got []byte, part coll.Part) { p.Poison(got, part.From, part.Off) })
		p.Fill(bytesOf(sl.src), t.shape.Rank, 0) // in place this may be part of dst
		patterns[i] = p
	}
	if err := t.up(); err != nil {
		return err
	}
	if err := t.callAsTimed(st); err != nil {
		return err
	}
	if err := t.down(); err != nil {
		return err
	}
	f.rounds++
	for i, sl := range st.slots {
		at := 0
		t.parts(sl.dst, func(got []byte, part coll.Part) {
			n, first := patterns[i].Check(got, part.From, part.Off)
			first.Index += at
			f.add(n, first)
			at += part.Len
		})
		// Out of place the input is the caller's, and stays as it was.
		if !t.inPlace {
			f.add(patterns[i].Check(bytesOf(sl.src), t.shape.Rank, 0))
		}
	}
	f.checked = true
	return nil
}

// add counts wrong elements and keeps the first.
func (f *found) add(n int, first verify.Wrong) {
	if n > 0 && f.wrong == 0 {
		f.first, f.round = first, f.rounds
	}
	f.wrong += n
}

// parts calls f with each part of dst.
func (t *test[T]) parts(dst []T, f func(got []byte, part coll.Part)) {
	for _, part := range t.Want(t.shape) {
		f(bytesOf(dst[:part.Len]), part)
		dst = dst[part.Len:]
	}
}

// checkBarrier notes when this rank was in a barrier: no rank may leave before the
// last has entered.
func (t *test[T]) checkBarrier(f *found) error {
	var ok bool
	f.enter, ok = machine.Clock()
	if err := t.call(t.turn()); err != nil {
		return err
	}
	f.exit, _ = machine.Clock()
	f.checked = ok
	return nil
}
