package hlo

import "slices"

// Random draws an array of random bits, of an unsigned type, by the generator Philox (Salmon et al. 2011).
// state is [2] of U64: a key, and a counter of blocks of 128 bits. next is the state behind those that were
// drawn. Equal states give equal bits.
func Random(state *Value, t Type, dims ...int) (next, bits *Value) {
	f := state.f
	if f.check(t, dims); f.err == nil && (state.t != U64 || !slices.Equal(state.dims, []int{2}) || t[0] != 'u') {
		f.fail("Random: %s by a state of %s", typeText(t, dims), state.text())
	}
	next, bits = f.value(U64, []int{2}, nil), f.value(t, slices.Clone(dims), nil)
	f.write([]*Value{next, bits}, "stablehlo.rng_bit_generator", "{rng_algorithm = #stablehlo<rng_algorithm PHILOX>}", []*Value{state})
	return next, bits
}
