package region

import (
	"sync/atomic"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/op"
)

// Made is the record of the collective of that place that rank r of this host has made, if it is one of its last.
func (g *Region) Made(r int, place uint64) (call.Record, bool) {
	if !g.keeps(r, place) {
		return call.Record{}, false
	}
	rec := op.LoadRecord(g.Call(r, place))
	// If a word of it is of a later call, that call's predecessor is seen as published now.
	return rec, rec.Place == place && g.keeps(r, place)
}

// keeps reports whether rank r of this host has published the collective of that place, and is not
// about to write over its record.
func (g *Region) keeps(r int, place uint64) bool {
	last := g.Entered(r).Load() >> 32
	ahead := int32(uint32(last) - uint32(place))
	return ahead >= 0 && ahead < int32(g.Kept)-1
}

// Collective is the number of the collective that rank r of this host is in or has last been in, and the word that says
// so. The word has the lower 32 bits of the number only, the record of the call all of them.
func (g *Region) Collective(r int) (place, word uint64) {
	word = g.Entered(r).Load()
	place = word >> 32
	// A word for itself: the record may be of another call by now, but no half of a number is read.
	if whole := op.RecordWords(g.Call(r, place))[0].Load(); uint32(whole) == uint32(place) {
		place = whole
	}
	return place, word
}

// Posted is the last round that rank r of this host has posted, as far as the last
// rounds of up to round tell.
func (g *Region) Posted(r int, round uint32) uint32 {
	last := round - g.Depth
	for i := range g.Depth {
		if v := uint32(atomic.LoadUint64(g.Flag(r, round-i)) >> 32); int32(v-last) > 0 {
			last = v
		}
	}
	return last
}
