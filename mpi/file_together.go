package mpi

import (
	"context"
	"slices"
	"time"
	"unsafe"

	"github.com/goccl/goccl/internal/backoff"
)

// together makes op on all ranks. They meet first, in a call that ctx can end, and none goes into
// MPI if one of them makes another call, has a refusal, or has another value of same than the
// others, which differ says in words. do is told the greatest same that a rank has; it is equal on
// all where differ is not "". Then all learn whether one has failed: a library tells only the rank
// that has written for the others.
//
// A rank whose ctx ends while they meet has said yes already, and the others may find so at any
// time, and go in. It cannot take that back: so it takes part when they do, with gone set and
// without anything of the caller's, and tells them afterwards. If the others do not go in, they
// hear of the end of ctx when they meet next.
func (f *File) together(ctx context.Context, op string, refusal *Error, same int64, differ string,
	do func(greatest int64, gone bool) error) error {
	meet := f.meeting(op, refusal, same)
	if left, err := f.agree(ctx, op, meet[:]); err != nil {
		if left != nil {
			left.goOn(func() {
				g := f.afresh()
				switch refused := g.outcome(meet, op, differ, refusal) != nil; {
				case refused && meet[metGone] != 0: // nobody uses it any more
					return
				case refused && op == "OpenFile":
					_ = g.comm.Free() // as the others do
					return
				case refused:
					g.tellGone(op)
					return
				}
				_ = g.comm.collectively(g.members, func() error { return do(meet[metSame], true) })
				_, _ = g.agree(context.Background(), op, []int64{0, 1})
			})
		}
		return err
	}
	if e := f.outcome(meet, op, differ, refusal); e != nil {
		return f.error(op, e)
	}
	err := f.comm.collectively(f.members, func() error { return do(meet[metSame], false) })
	own := errorOf(op, ErrOther, err)
	ends := []int64{f.verdict(own), 0} // the second word: a rank is gone
	if _, err := f.agree(context.Background(), op, ends); err != nil {
		return err
	}
	if ends[1] != 0 {
		return f.error(op, f.lost())
	}
	if ends[0] == 0 {
		return nil
	}
	// ROMIO passes the code of one rank's error on to the others, to which its text and class mean nothing.
	class, rank := f.said(ends[0])
	if own == nil || own.Class == ErrOther && class != ErrOther {
		own = failed(op, class, "failed on rank %d", rank)
	}
	return f.error(op, own)
}

// meeting is what ranks tell each other before they make a call. Each word is the greatest of all ranks' afterwards.
type meeting [6]int64

// The words of a meeting.
const (
	metVerdict = iota // of the refusals, see verdict
	metGone           // 1: a rank has given the file up
	metSame           // the greatest value
	metLeast          // the least, with the other sign
	metLast           // the last of fileOps that a rank makes, and the lowest rank that does
	metFirst          // the first, counted from the end, and the lowest rank that does
)

// fileOps are the collective calls on a file.
var fileOps = [...]string{"OpenFile", "Close", "SetSize", "Sync", "ReadAtAll", "WriteAtAll"}

// meeting is this rank's part of one before op.
func (f *File) meeting(op string, refusal *Error, same int64) meeting {
	code, rank := int64(slices.Index(fileOps[:], op)), int64(f.comm.size-f.comm.rank)
	return meeting{metVerdict: f.verdict(refusal), metSame: same, metLeast: -same,
		metLast: code<<32 + rank, metFirst: (int64(len(fileOps))-code)<<32 + rank}
}

// outcome is nil, or why no rank makes op after they have met: on all of them, each with its own refusal if it has one.
func (f *File) outcome(m meeting, op, differ string, refusal *Error) *Error {
	word := func(i int) (code int64, rank int) { return m[i] >> 32, f.comm.size - int(m[i]&(1<<32-1)) }
	last, lastOn := word(metLast)
	first, firstOn := word(metFirst)
	first = int64(len(fileOps)) - first
	switch {
	case m[metGone] != 0:
		return f.lost()
	case first != last:
		if lastOn < firstOn {
			first, firstOn, last, lastOn = last, lastOn, first, firstOn
		}
		return failed(op, ErrNotSame, "rank %d is in %s, rank %d in %s: the ranks make the same collective calls on a file, in the same order",
			firstOn, fileOps[first], lastOn, fileOps[last])
	case refusal != nil:
		return refusal
	case m[metVerdict] != 0:
		class, rank := f.said(m[metVerdict])
		return failed(op, class, "refused on rank %d", rank)
	case differ != "" && m[metSame] != -m[metLeast]:
		return failed(op, ErrNotSame, "the ranks give different %s", differ)
	}
	return nil
}

// lost breaks f, which another rank has given up.
func (f *File) lost() *Error {
	e := failed("", ErrAbandoned, "another rank did not wait for all to come: this file can no longer be used")
	f.comm.broken.Store(e)
	own := *e
	return &own
}

// tellGone has the other ranks learn that this one has given the file up, when they meet next.
func (f *File) tellGone(op string) {
	m := f.meeting(op, nil, 0)
	m[metGone] = 1
	_, _ = f.agree(context.Background(), op, m[:])
}

// afresh is f by a communicator that is not broken, for what a rank that has given f up still owes the others.
func (f *File) afresh() *File {
	c := &Comm{handle: f.comm.handle, rank: f.comm.rank, size: f.comm.size, hidden: f.comm.hidden}
	return &File{name: f.name, mode: f.mode, comm: c, members: f.members}
}

// goOn calls then once r, which was abandoned, is complete. Finalize refuses until then has returned.
func (r *Request) goOn(then func()) {
	a := &apart{done: make(chan struct{})}
	live.Lock()
	live.all[r] = false // a is counted in its place
	live.apart = append(live.apart, a)
	live.Unlock()
	go func() {
		defer close(a.done)
		for wait := (backoff.Sleep{First: time.Millisecond, Most: 10 * time.Millisecond}); ; wait.Next() {
			switch done, _, err := r.Test(); {
			case err != nil:
				return
			case done:
				then()
				return
			}
		}
	}()
}

// agree makes each word the greatest of all ranks. It is polled whatever ctx is, so that all ranks
// use one form. Where ctx has ended it it goes on as the request left, which keeps words.
func (f *File) agree(ctx context.Context, op string, words []int64) (left *Request, err error) {
	if e, ok := f.comm.ready(op).(*Error); ok {
		return nil, f.error(op, e)
	}
	memory := unsafe.Pointer(&words[0])
	k := Call{Kind: KindAllReduce, Type: TypeInt64, Op: Max, N: len(words), Dst: uintptr(memory), InPlace: true}
	k.keep[0] = memory
	if ctx.Err() != nil {
		return nil, f.error(op, &Error{Class: ErrAbandoned, Text: "not begun", Err: ctx.Err()})
	}
	_, left, err = f.comm.pollOrLeave(ctx, &k)
	if e, ok := err.(*Error); ok {
		if e.Class == ErrAbandoned {
			e = &Error{Class: ErrAbandoned, Err: e.Err, Text: "not all ranks have come: this file can no longer be used"}
			f.comm.broken.Store(e)
		}
		return left, f.error(op, e)
	}
	return left, err
}

// verdict is err and this rank in a word, of which the greatest is that of the lowest rank with some class.
func (f *File) verdict(err *Error) int64 {
	if err == nil {
		return 0
	}
	return (int64(err.Class)+1)<<32 + int64(f.comm.size-f.comm.rank)
}

func (f *File) said(verdict int64) (Class, int) {
	return Class(verdict>>32 - 1), f.comm.size - int(verdict&(1<<32-1))
}
