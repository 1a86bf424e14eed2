package agree

import (
	"encoding/binary"
	"slices"
)

// Clone returns a Party that goes on by itself, for a checker that explores what may happen.
func (p *Party) Clone() *Party {
	q := *p
	q.gone, q.said, q.Post = slices.Clone(p.gone), slices.Clone(p.said), slices.Clone(p.Post)
	return &q // the lists of a Notice are never written to
}

// Append appends what tells p's state from others.
func (p *Party) Append(b []byte) []byte {
	flags := byte(0)
	for i, f := range []bool{p.Decided, p.bound} {
		if f {
			flags |= 1 << i
		}
	}
	b = append(b, byte(p.End), flags, byte(p.phase), byte(p.lead+1))
	for _, g := range p.gone {
		if g {
			b = append(b, 1)
		} else {
			b = append(b, 0)
		}
	}
	b = binary.LittleEndian.AppendUint64(b, p.ballot)
	b = appendLists(b, p.Ranks, p.Ended)
	b = binary.LittleEndian.AppendUint64(b, p.made)
	for i := range p.said {
		b = p.said[i].Append(b)
	}
	return b
}

// AppendEnd is Append of a party that has come to its end.
func (p *Party) AppendEnd(b []byte) []byte {
	if b = append(b, byte(p.End)); p.End == Agreed {
		b = appendLists(binary.LittleEndian.AppendUint64(b, p.ballot), p.Ranks, p.Ended)
	}
	return b
}

// Append appends what tells n from others.
func (n *Notice) Append(b []byte) []byte {
	b = append(b, byte(n.Kind))
	if n.Kind == 0 {
		return b
	}
	return appendLists(binary.LittleEndian.AppendUint64(b, n.Ballot), n.Ranks, n.Ended)
}

func appendLists(b []byte, ranks, ended []int32) []byte {
	b = append(b, byte(len(ranks)), byte(len(ended)))
	for _, r := range ranks {
		b = append(b, byte(r))
	}
	for _, r := range ended {
		b = append(b, byte(r))
	}
	return b
}
