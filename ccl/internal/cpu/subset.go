package cpu

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/mail"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/tcp"
	"github.com/goccl/goccl/internal/op"
)

// How some ranks of a Comm make one of their own, without the others. The lowest of them, the hub, hears from each and
// answers all, three times:
//
//	the list of ranks            who has come, and what the Comm is called; or who has not, or has another list
//	where a host's memory lies   where all of it lies
//	that the Comm is made        that all have made it
//
// A message counts only while its sender waits: none is complete before it is received (mail.Subset), and each answer repeats the number
// of the attempt. So what is left of an attempt that came to nothing is no part of the next.

// Subset makes the Comm of those ranks of c, in their order, which all of them call with the same list and tag. limit is how long
// that may take, 0 for Options.Timeout.
func Subset(ctx context.Context, c *Comm, a *mail.Account, ranks []int, tag int, limit time.Duration, opt plane.Options) (*Comm, *call.Fault) {
	// c may be closed meanwhile: what is used of it from here on belongs to the job.
	if !c.rank.Site.Job.TryHold() {
		return nil, call.NewFault(call.Closed, -1, "the job has ended here")
	}
	defer c.rank.Site.Job.Leave()
	m := &meeting{ctx: ctx, a: a, tag: int64(tag), self: c.World(c.Rank()), attempt: rand.Uint64()}
	p := partOf(c, ranks)
	for _, r := range ranks {
		m.ranks = append(m.ranks, c.World(r))
	}
	m.hub = slices.Min(m.ranks)
	if limit = cmp.Or(limit, c.rank.Group.Timeout()); limit > 0 {
		m.until = time.Now().Add(limit)
	}
	id := group.ChildID(c.ID(), rand.Uint64()|1<<41, ranks[0]) | tcp.Announced
	said, f := m.meet(listHash(m.ranks), uint64(len(ranks)), id)
	if f != nil {
		return nil, f
	}
	id = said.id
	var off uint64
	var err error
	if p.lead() == c.Rank() {
		if off, err = c.rank.Site.Here.Host.Alloc(region.Bytes(p.locals())); err != nil {
			off = noRegion
		}
	}
	offs, f := m.gather(off)
	if f != nil {
		return nil, f // the memory stays until the job ends: others may have it by now
	}
	var child *Comm
	if at := offs[slices.Index(ranks, p.lead())]; at != noRegion {
		child, err = makeComm(c.rank.Site, id, p.world, p.topo, p.me, at, opt)
	}
	made := uint64(0)
	if child == nil {
		made = 1
	}
	all, f := m.gather(made)
	if f == nil {
		if i := slices.IndexFunc(all, func(x uint64) bool { return x != 0 }); i >= 0 {
			f = call.NewFault(call.Backend, m.ranks[i], "the rank has no shared memory left for the new Comm")
			if m.ranks[i] == m.self && err != nil {
				f.Err = err
			}
			if off > noRegion && child == nil { // nobody of this host has it
				c.rank.Site.Here.Host.Free(off, region.Bytes(p.locals()))
			}
		}
	}
	if f != nil {
		if child != nil {
			c.rank.Site.Post(neverSplit(&c.rank, id, &call.Fault{Code: call.Aborted, Peer: c.Rank(), Err: errors.New("a rank has not made it")}, ranks, p.me))
			child.rank.Abandon()
		}
		return nil, f
	}
	return begun(c, child), nil
}

// listHash tells lists of ranks apart.
func listHash(ranks []int) uint64 {
	h := fnv.New64a()
	for _, r := range ranks {
		_ = binary.Write(h, binary.LittleEndian, uint64(r))
	}
	return h.Sum64()
}

// meeting is one attempt of one rank. Its ranks are those of the world.
type meeting struct {
	ctx       context.Context
	a         *mail.Account
	tag       int64
	self, hub int
	ranks     []int
	until     time.Time // zero: no limit
	attempt   uint64
	attempts  []uint64 // the hub's: that of each rank
}

// verdict is what the hub says first.
type verdict struct {
	code    call.Code
	peer    int // -1: none
	id      uint64
	missing []int
}

const (
	helloWords   = 3  // attempt, hash and length of the list
	missingMost  = 16 // that a verdict names
	verdictWords = 5 + missingMost
	// verdictGrace is how much longer than the hub, which says who is missing, the others wait.
	verdictGrace = 500 * time.Millisecond
)

// meet has the hub find out whether all have come, with the same list.
func (m *meeting) meet(hash, n, id uint64) (verdict, *call.Fault) {
	if m.self != m.hub {
		if f := m.send(m.hub, []uint64{m.attempt, hash, n}); f != nil {
			return verdict{}, f
		}
		words, f := m.answer(verdictWords)
		if f != nil {
			return verdict{}, f
		}
		v := verdict{code: call.Code(words[1]), peer: int(int64(words[2])), id: words[3]}
		for _, w := range words[5:][:min(words[4], missingMost)] {
			v.missing = append(v.missing, int(w))
		}
		return v, v.fault()
	}
	v := verdict{peer: -1, id: id}
	m.attempts = make([]uint64, len(m.ranks))
	hellos := make([][]uint64, len(m.ranks))
	came, f := m.fromAll(func(i int) []uint64 { hellos[i] = make([]uint64, helloWords); return hellos[i] })
	if f != nil && f.Code != call.Timeout {
		return v, f
	}
	for i, r := range m.ranks {
		switch {
		case r == m.self:
		case !came[i]:
			if v.code = call.Timeout; len(v.missing) == 0 {
				v.peer = r
			}
			v.missing = append(v.missing, r)
		default:
			if m.attempts[i] = hellos[i][0]; (hellos[i][1] != hash || hellos[i][2] != n) && v.code == 0 {
				v.code, v.peer = call.Mismatch, r
			}
		}
	}
	words := make([]uint64, verdictWords)
	words[1], words[2], words[3], words[4] = uint64(v.code), uint64(int64(v.peer)), v.id, uint64(min(len(v.missing), missingMost))
	for i, r := range v.missing[:words[4]] {
		words[5+i] = uint64(r)
	}
	if f := m.toAll(words, came, v.code != 0); f != nil && v.code == 0 {
		return v, f
	}
	return v, v.fault()
}

// fault is what the verdict is to its rank, nil if all is well.
func (v *verdict) fault() *call.Fault {
	switch v.code {
	case 0:
		return nil
	case call.Timeout:
		return &call.Fault{Code: v.code, Peer: v.peer, Missing: v.missing, Err: errors.New("not all ranks of the list have called it")}
	}
	return call.NewFault(v.code, v.peer, "the rank has called it with another list of ranks")
}

// gather tells all ranks a word of each.
func (m *meeting) gather(mine uint64) ([]uint64, *call.Fault) {
	all := make([]uint64, 1+len(m.ranks))
	if m.self != m.hub {
		if f := m.send(m.hub, []uint64{m.attempt, mine}); f != nil {
			return nil, f
		}
		words, f := m.answer(len(all))
		if f != nil {
			return nil, f
		}
		return words[1:], nil
	}
	words := make([][]uint64, len(m.ranks))
	if _, f := m.fromAll(func(i int) []uint64 { words[i] = make([]uint64, 2); return words[i] }); f != nil {
		return nil, f
	}
	for i, r := range m.ranks {
		switch {
		case r == m.self:
			all[1+i] = mine
		case words[i][0] != m.attempts[i]:
			return nil, call.NewFault(call.Canceled, r, "the rank has begun anew")
		default:
			all[1+i] = words[i][1]
		}
	}
	return all[1:], m.toAll(all, nil, false)
}

// what is a message of words.
func (m *meeting) what(words []uint64, grace time.Duration) mail.What {
	w := mail.What{Use: mail.Subset, Tag: m.tag, Type: op.Uint64, Count: len(words), Mem: bytesOf(words), Within: -1}
	if !m.until.IsZero() {
		w.Within = max(time.Until(m.until)+grace, time.Millisecond)
	}
	return w
}

// ended waits for a message.
func (m *meeting) ended(x interface {
	Done() <-chan struct{}
	Cancel()
	Fault() *call.Fault
}) *call.Fault {
	select {
	case <-x.Done():
	case <-m.ctx.Done():
		if err := m.ctx.Err(); errors.Is(err, context.Canceled) {
			x.Cancel()
			<-x.Done()
			if f := x.Fault(); f != nil {
				return call.CtxFault(err, m.self, nil)
			}
			return nil
		}
		<-x.Done() // its limit is that of ctx, and a little for who is told
	}
	return x.Fault()
}

// send sends words to rank w.
func (m *meeting) send(w int, words []uint64) *call.Fault {
	return m.ended(m.a.Send(m.what(words, 0), w))
}

// answer is what the hub says to this attempt.
func (m *meeting) answer(n int) ([]uint64, *call.Fault) {
	words := make([]uint64, n)
	for {
		if f := m.ended(m.a.Recv(m.what(words, verdictGrace), m.hub)); f != nil || words[0] == m.attempt {
			return words, f
		}
	}
}

// fromAll has the hub receive from all others, and reports who has come.
func (m *meeting) fromAll(to func(i int) []uint64) (came []bool, first *call.Fault) {
	came = make([]bool, len(m.ranks))
	waits := make([]*mail.Receiving, len(m.ranks))
	for i, r := range m.ranks {
		if r != m.self {
			waits[i] = m.a.Recv(m.what(to(i), 0), r)
		}
	}
	for i, w := range waits {
		if w == nil {
			continue
		}
		f := m.ended(w)
		if came[i] = f == nil; f != nil && (first == nil || first.Code == call.Timeout) {
			first = f
		}
	}
	return came, first
}

// toAll has the hub answer all others, or those of them that have come. late is whether it may take a little longer.
func (m *meeting) toAll(words []uint64, came []bool, late bool) (first *call.Fault) {
	var sent []*mail.Sending
	grace := time.Duration(0)
	if late {
		grace = verdictGrace
	}
	for i, r := range m.ranks {
		if r == m.self || came != nil && !came[i] {
			continue
		}
		of := slices.Clone(words)
		of[0] = m.attempts[i]
		sent = append(sent, m.a.Send(m.what(of, grace), r))
	}
	for _, s := range sent {
		first = cmp.Or(first, m.ended(s))
	}
	return first
}
