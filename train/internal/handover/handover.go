// Package handover sends the state of a job from the ranks that have it to those that need it.
package handover

import (
	"context"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/raw"
)

// State is a state as this rank sends or receives it.
type State struct {
	views raw.Views
	bufs  []ccl.Buf
	parts []part
	bytes int64
}

// part is the memory of one Buf of the state.
type part struct {
	buf   ccl.Buf
	data  []byte
	apart bool // data is a copy
}

// New is the state in bufs. If the rank receives, keeps says that bufs are as they were until Arrived.
func New(v raw.Views, bufs []ccl.Buf, receives, keeps bool) (*State, error) {
	s := &State{views: v, bufs: bufs}
	for _, b := range bufs {
		p, err := part{buf: b}, error(nil)
		if p.data, err = raw.Bytes(b); err != nil || receives && keeps {
			p.data, p.apart = make([]byte, b.Len()*b.Type().Size()), true
			if !receives {
				if p.data, err = v.Pack(p.data, []ccl.Buf{b}); err != nil {
					return nil, err
				}
			}
		}
		s.parts = append(s.parts, p)
		s.bytes += int64(len(p.data))
	}
	return s, nil
}

// Arrived puts what has arrived where it belongs, and returns its hash.
func (s *State) Arrived() (int64, error) {
	for _, p := range s.parts {
		if p.apart {
			if err := s.views.Unpack([]ccl.Buf{p.buf}, p.data); err != nil {
				return 0, err
			}
		}
	}
	return s.views.Hash(s.bufs)
}

// Move sends the state: the k-th of the sources sends the k-th of equal shares to each rank that needs
// it. All ranks of c call it.
func (s *State) Move(ctx context.Context, c *ccl.Comm, sources, need []int) error {
	me, n := c.Rank(), int64(len(sources))
	receives := slices.Contains(need, me)
	return c.On(nil).Group(func(q ccl.Queue) error {
		for k, from := range sources {
			i, j := s.bytes*int64(k)/n, s.bytes*int64(k+1)/n
			switch {
			case from == me:
				for _, r := range need {
					share(s.parts, i, j, func(b ccl.Buf) { q.Send(b, r) })
				}
			case receives:
				share(s.parts, i, j, func(b ccl.Buf) { q.Recv(b, from) })
			}
		}
		return nil
	}).Wait(ctx)
}

// share calls f with the pieces of the bytes from one to another of all parts.
func share(parts []part, from, to int64, f func(b ccl.Buf)) {
	for _, p := range parts {
		n := int64(len(p.data))
		if i, j := max(from, 0), min(to, n); i < j {
			f(ccl.BufOf(p.data[i:j]))
		}
		from, to = from-n, to-n
	}
}
