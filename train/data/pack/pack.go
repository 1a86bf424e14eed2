// Package pack puts short documents side by side into rows of one length, without padding where that can be: sequence
// packing. A row says which of its documents each token belongs to, so that attention does not go from one to another.
//
//	p, err := pack.New(lengths, context) // the same on all ranks
//	s := data.Sampler{N: p.Rows(), Rank: rank, Size: size, Seed: 1}
//	items, err := s.Epoch(epoch, consumed)
//	for consumed, i := range items {
//		err = p.Fill(i, &row, func(doc int) ([]int32, error) { return tokens[doc], nil })
//		train(row) // a checkpoint needs epoch and consumed
//	}
//
// Which documents share a row follows from the lengths alone: the Sampler draws rows, and a run
// goes on from what all ranks have consumed, on any number of ranks, as with single items.
package pack

import (
	"fmt"
	"math"
	"math/bits"
)

// Ignored is the target of padding; tp.CrossEntropy leaves it out.
const Ignored = -100

// mostContext is the longest row: New counts documents by their lengths.
const mostContext = 1 << 24

// Padding is the document of padding.
const Padding = -1

// Span is the tokens Lo to Hi of a document. Each has the token after it as its target.
type Span struct{ Doc, Lo, Hi int32 }

// Packing is which documents are in which row.
type Packing struct {
	context int
	spans   []Span
	first   []int // span of each row, and an end
}

// New packs documents of these numbers of tokens into rows of context tokens. A document of n
// tokens takes n-1 places: the last token is a target only. Longer ones than a row are cut, and
// what is over is packed. It is best fit, the longest first (Ding et al. 2024 do so to language
// models), and takes a moment for a million documents.
func New(lengths []int, context int) (*Packing, error) {
	if err := check(lengths, context); err != nil {
		return nil, err
	}
	p := &Packing{context: context}
	var pieces []Span             // those of a whole row, and then the shorter ones, the longest first
	short := make([]int, context) // how many of each length
	for doc, n := range lengths {
		lo := 0
		for ; n-1-lo >= context; lo += context {
			pieces = append(pieces, Span{int32(doc), int32(lo), int32(lo + context)})
		}
		if n-1 > lo {
			short[n-1-lo]++
		}
	}
	at := make([]int, context) // where the next piece of a length goes
	end := len(pieces)
	for n := context - 1; n > 0; n-- {
		at[n] = end
		end += short[n]
	}
	pieces = append(pieces, make([]Span, end-len(pieces))...)
	for doc, n := range lengths {
		if n--; n%context > 0 {
			pieces[at[n%context]] = Span{int32(doc), int32(n - n%context), int32(n)}
			at[n%context]++
		}
	}
	p.place(pieces)
	return p, nil
}

// Single gives each document a row of its own, for models whose attention knows no documents. One that is longer than a
// row is cut; one of less than two tokens has none.
func Single(lengths []int, context int) (*Packing, error) {
	if err := check(lengths, context); err != nil {
		return nil, err
	}
	p := &Packing{context: context, first: []int{0}}
	for doc, n := range lengths {
		for lo := 0; lo < n-1; lo += context {
			p.spans = append(p.spans, Span{int32(doc), int32(lo), int32(min(lo+context, n-1))})
			p.first = append(p.first, len(p.spans))
		}
	}
	return p, nil
}

func check(lengths []int, context int) error {
	if context < 1 || context > mostContext {
		return fmt.Errorf("data/pack: rows of %d tokens; from 1 to %d", context, mostContext)
	}
	if len(lengths) > math.MaxInt32 {
		return fmt.Errorf("data/pack: %d documents; at most %d", len(lengths), math.MaxInt32)
	}
	for doc, n := range lengths {
		if n < 0 || n > math.MaxInt32 {
			return fmt.Errorf("data/pack: document %d has %d tokens", doc, n)
		}
	}
	return nil
}

// place gives each piece a row: the one with the least room that suffices, or a new one.
func (p *Packing) place(pieces []Span) {
	open := make([][]int, p.context)         // rows by the room that they have
	has := make([]uint64, (p.context+63)/64) // which of open are not empty
	rows := make([]int, len(pieces))         // of each piece
	var count []int                          // of pieces in each row
	for i, s := range pieces {
		n := int(s.Hi - s.Lo)
		row, room := len(count), least(has, n)
		if room < 0 {
			room = p.context
			count = append(count, 0)
		} else {
			list := open[room]
			row, open[room] = list[len(list)-1], list[:len(list)-1]
			if len(list) == 1 {
				has[room/64] &^= 1 << (room % 64)
			}
		}
		rows[i] = row
		count[row]++
		if room -= n; room > 0 {
			open[room] = append(open[room], row)
			has[room/64] |= 1 << (room % 64)
		}
	}
	p.first = make([]int, len(count)+1)
	for row, n := range count {
		p.first[row+1] = p.first[row] + n
	}
	next := append([]int(nil), p.first...)
	p.spans = make([]Span, len(pieces))
	for i, s := range pieces {
		p.spans[next[rows[i]]] = s
		next[rows[i]]++
	}
}

// least is the lowest bit that is set from n on; -1: none.
func least(has []uint64, n int) int {
	for w := n / 64; w < len(has); w++ {
		x := has[w]
		if w == n/64 {
			x &= ^uint64(0) << (n % 64)
		}
		if x != 0 {
			return w*64 + bits.TrailingZeros64(x)
		}
	}
	return -1
}

// Rows is how many there are.
func (p *Packing) Rows() int { return len(p.first) - 1 }

// Spans are the parts of documents in a row, in their order. They are the Packing's memory.
func (p *Packing) Spans(row int) []Span { return p.spans[p.first[row]:p.first[row+1]] }

// Used is the share of all places that are not padding.
func (p *Packing) Used() float64 {
	used := 0
	for _, s := range p.spans {
		used += int(s.Hi - s.Lo)
	}
	return float64(used) / float64(max(p.Rows()*p.context, 1))
}

// Row is one row, as Fill sets it.
type Row struct {
	// Tokens and Targets are the inputs and what follows each. At padding they are Pad and Ignored.
	Tokens, Targets []int32
	// Positions are those of tokens in their parts of documents, from 0.
	Positions []int32
	// Documents counts those of the row from 0: attention goes between tokens that have the same, and not between others.
	// At padding it is Padding.
	Documents []int32
	// Ends are where the parts of documents end, after a 0: the cu_seqlens of attention on variable lengths.
	Ends []int32
	// Pad is the token of padding.
	Pad int32
}

// Fill sets r to a row, whose slices it makes if they are too short. doc returns the tokens of a document.
func (p *Packing) Fill(row int, r *Row, doc func(doc int) ([]int32, error)) error {
	return p.FillMasked(row, r, func(d int) ([]int32, []bool, error) {
		tokens, err := doc(d)
		return tokens, nil, err
	})
}

// FillMasked is Fill with documents of which some tokens alone are targets, such as answers: doc
// says for each whether it is, or returns nil if all are. The others are Ignored as targets.
func (p *Packing) FillMasked(row int, r *Row, doc func(doc int) (tokens []int32, wanted []bool, err error)) error {
	if row < 0 || row >= p.Rows() {
		return fmt.Errorf("data/pack: row %d of %d", row, p.Rows())
	}
	for _, s := range []*[]int32{&r.Tokens, &r.Targets, &r.Positions, &r.Documents} {
		if cap(*s) < p.context {
			*s = make([]int32, p.context)
		}
		*s = (*s)[:p.context]
	}
	r.Ends = append(r.Ends[:0], 0)
	at := 0
	for k, s := range p.Spans(row) {
		all, wanted, err := doc(int(s.Doc))
		if err != nil {
			return fmt.Errorf("data/pack: document %d: %w", s.Doc, err)
		}
		if wanted != nil && len(wanted) != len(all) {
			return fmt.Errorf("data/pack: document %d has %d tokens, and %d that are wanted or not",
				s.Doc, len(all), len(wanted))
		}
		if len(all) <= int(s.Hi) {
			return fmt.Errorf("data/pack: document %d has %d tokens, and was packed with %d or more", s.Doc, len(all), s.Hi+1)
		}
		copy(r.Tokens[at:], all[s.Lo:s.Hi])
		copy(r.Targets[at:], all[s.Lo+1:s.Hi+1])
		for i := range s.Hi - s.Lo {
			if wanted != nil && !wanted[s.Lo+i+1] {
				r.Targets[at] = Ignored
			}
			r.Positions[at], r.Documents[at] = i, int32(k)
			at++
		}
		r.Ends = append(r.Ends, int32(at))
	}
	for ; at < p.context; at++ {
		r.Tokens[at], r.Targets[at], r.Positions[at], r.Documents[at] = r.Pad, Ignored, 0, Padding
	}
	return nil
}

// Sees reports whether token t of the row sees token u: it comes no later, and is of the same
// document. Padding sees and is seen by itself alone, so that its row of weights is not empty.
func (r *Row) Sees(t, u int) bool {
	return t == u || u < t && r.Documents[t] == r.Documents[u] && r.Documents[t] != Padding
}
