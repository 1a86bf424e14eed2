package harness

import (
	"unsafe"

	"github.com/goccl/goccl/bench/internal/coll"
	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/verify"
	"github.com/goccl/goccl/ccl"
)

// check makes one iteration whose results are known.
func (t *test[T]) check(f *findings) error {
	st := t.nextBuffers()
	patterns := make([]*verify.Pattern, len(st.slots))
	for i, sl := range st.slots {
		t.s.seed++
		// Groups call at the same time, and each has inputs of its own.
		seed := t.s.seed + uint64(t.s.group)<<40
		p := &verify.Pattern{Type: ccl.TypeOf[T](), Op: t.op, Reduce: t.Reduces, Ranks: t.shape.Ranks, Seed: seed}
		if t.op >= option.MulSum { // as the Comm has it
			p.Op, p.Factor = ccl.Sum, option.Factor
		}
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
		// What is not overwritten by the result is the caller's, and stays as it was: out of place all of
		// the input, in place what lies outside dst.
		for _, rest := range outside(sl.src, sl.dst) {
			n, first := patterns[i].Check(bytesOf(sl.src[rest.from:rest.to]), t.shape.Rank, rest.from)
			first.Index += rest.from
			first.Input = true
			f.add(n, first)
		}
	}
	f.checked = true
	return nil
}

// add counts wrong elements and keeps the first.
func (f *findings) add(n int, first verify.Wrong) {
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

// span is elements from to to of a slice.
type span struct{ from, to int }

// outside is what of src is not also dst.
func outside[T ccl.Number](src, dst []T) []span {
	if len(src) == 0 || len(dst) == 0 {
		return []span{{0, len(src)}}
	}
	elem := int(unsafe.Sizeof(src[0]))
	at := func(s []T) int { return int(uintptr(unsafe.Pointer(&s[0]))) }
	from, to := (at(dst)-at(src))/elem, (at(dst)-at(src))/elem+len(dst)
	if from >= len(src) || to <= 0 {
		return []span{{0, len(src)}}
	}
	return []span{{0, max(from, 0)}, {min(to, len(src)), len(src)}}
}
