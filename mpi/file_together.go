package mpi

import (
	"context"
	"time"
	"unsafe"

	"github.com/goccl/goccl/internal/backoff"
)

// together makes op on all ranks. They meet first, in a call that ctx can end, and none goes into MPI if one of them has a
// refusal, or another value of same than the others, which differ says in words. do is told the greatest same that a
// rank has; it is equal on all where differ is not "". Then all learn whether one has failed: a library tells only
// the rank that has written for the others.
//
// A rank whose ctx ends while they meet has said yes already, and the others may find so at any time, and go in. It cannot
// take that back: so it takes part when they do, with gone set and without anything of the caller's, and tells them afterwards.
func (f *File) together(ctx context.Context, op string, refusal *Error, same int64, differ string, do func(greatest int64, gone bool) error) error {
	meet := []int64{f.verdict(refusal), same, -same}
	differs := func() bool { return differ != "" && meet[1] != -meet[2] }
	if left, err := f.agree(ctx, op, meet); err != nil {
		if left != nil {
			left.goOn(func() {
				if g := f.afresh(); meet[0] == 0 && !differs() {
					_ = g.comm.collectively(g.members, func() error { return do(meet[1], true) })
					_, _ = g.agree(context.Background(), op, []int64{0, 1, 0})
				}
			})
		}
		return err
	}
	if refusal != nil {
		return f.error(op, refusal)
	}
	if meet[0] != 0 {
		class, rank := f.said(meet[0])
		return f.error(op, failed(op, class, "refused on rank %d", rank))
	}
	if differs() {
		return f.error(op, failed(op, ErrNotSame, "the ranks give different %s", differ))
	}
	err := f.comm.collectively(f.members, func() error { return do(meet[1], false) })
	own, ok := err.(*Error)
	if err != nil && !ok {
		own = failed(op, ErrOther, "%v", err)
	}
	ends := []int64{f.verdict(own), 0, 0} // the second word: a rank is gone
	if _, err := f.agree(context.Background(), op, ends); err != nil {
		return err
	}
	if ends[1] != 0 {
		e := &Error{Class: ErrAbandoned, Text: "another rank did not wait for all to come: this file can no longer be used"}
		f.comm.broken.Store(e)
		own := *e
		return f.error(op, &own)
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

// agree makes each word the greatest of all ranks. It is polled whatever ctx is, so that all ranks use one form. Where ctx
// has ended it it goes on as the request left, which keeps words.
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
