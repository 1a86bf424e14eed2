package agree

import (
	"encoding/binary"
	"slices"
)

// Clone returns a Party that goes on by itself, for a checker that explores what may happen.
func (p *Party) Clone() *Party {
	q := *p
	q.gone, q.left, q.sure = slices.Clone(p.gone), slices.Clone(p.left), slices.Clone(p.sure)
	q.Post, q.early = slices.Clone(p.Post), slices.Clone(p.early)
	q.tree.said = slices.Clone(p.tree.said)
	return &q // the lists of a Notice are never written to, nor is tree.via
}

// Append appends what tells p's state from others.
func (p *Party) Append(b []byte) []byte {
	flags, t := byte(0), &p.tree
	for i, f := range []bool{p.Decided, p.bound, t.sent, t.told} {
		if f {
			flags |= 1 << i
		}
	}
	b = append(b, byte(p.End), flags, byte(t.phase), byte(t.lead+1))
	for _, g := range p.gone {
		b = binary.LittleEndian.AppendUint64(b, g)
	}
	for _, v := range []uint64{p.ballot, p.made, t.asked} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	b = appendLists(b, p.Ranks, p.Ended, p.left, p.sure)
	for _, a := range t.said {
		b = append(b, byte(a.kind))
		if a.kind != 0 {
			b = binary.LittleEndian.AppendUint64(append(b, byte(a.lead)), a.ballot)
		}
	}
	b = append(b, byte(len(p.early)))
	for i := range p.early {
		b = p.early[i].Append(append(b, byte(p.early[i].To)))
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
	return appendLists(binary.LittleEndian.AppendUint64(append(b, byte(n.Lead)), n.Ballot), n.Ranks, n.Ended, n.For,
		n.Left, n.Sure)
}

func appendLists(b []byte, lists ...[]int32) []byte {
	for _, list := range lists {
		b = append(b, byte(len(list)))
		for _, r := range list {
			b = append(b, byte(r))
		}
	}
	return b
}
