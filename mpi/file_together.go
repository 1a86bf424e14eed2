package mpi

import (
	"context"
	"unsafe"
)

// together makes op on all ranks. They meet first, in a call that ctx can end, and none goes into MPI if one of them has a
// refusal, or another value of same than the others, which differ says in words. do is told the greatest same that a
// rank has; it is equal on all where differ is not "". Then all learn whether one has failed: a library tells only
// the rank that has written for the others.
func (f *File) together(ctx context.Context, op string, refusal *Error, same int64, differ string, do func(greatest int64) error) error {
	meet := [...]int64{f.verdict(refusal), same, -same}
	if err := f.agree(ctx, op, meet[:]); err != nil {
		return err
	}
	if refusal != nil {
		return f.error(op, refusal)
	}
	if meet[0] != 0 {
		class, rank := f.said(meet[0])
		return f.error(op, failed(op, class, "refused on rank %d", rank))
	}
	if differ != "" && meet[1] != -meet[2] {
		return f.error(op, failed(op, ErrNotSame, "the ranks give different %s", differ))
	}
	err := f.comm.collectively(f.members, func() error { return do(meet[1]) })
	own, ok := err.(*Error)
	if err != nil && !ok {
		own = failed(op, ErrOther, "%v", err)
	}
	meet = [...]int64{f.verdict(own), 0, 0}
	if err := f.agree(context.Background(), op, meet[:]); err != nil {
		return err
	}
	if meet[0] == 0 {
		return nil
	}
	// ROMIO passes the code of one rank's error on to the others, to which its text and class mean nothing.
	class, rank := f.said(meet[0])
	if own == nil || own.Class == ErrOther && class != ErrOther {
		own = failed(op, class, "failed on rank %d", rank)
	}
	return f.error(op, own)
}

// agree makes each word the greatest of all ranks. It is polled whatever ctx is, so that all ranks use one form.
func (f *File) agree(ctx context.Context, op string, words []int64) error {
	if e, ok := f.comm.ready(op).(*Error); ok {
		return f.error(op, e)
	}
	memory := unsafe.Pointer(&words[0])
	k := Call{Kind: KindAllReduce, Type: TypeInt64, Op: Max, N: len(words), Dst: uintptr(memory), InPlace: true}
	k.keep[0] = memory
	if ctx.Err() != nil {
		return f.error(op, &Error{Class: ErrAbandoned, Text: "not begun", Err: ctx.Err()})
	}
	_, err := f.comm.poll(ctx, &k)
	if e, ok := err.(*Error); ok {
		if e.Class == ErrAbandoned {
			e = &Error{Class: ErrAbandoned, Err: e.Err, Text: "not all ranks have come: this file can no longer be used"}
			f.comm.broken.Store(e)
		}
		return f.error(op, e)
	}
	return err
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
