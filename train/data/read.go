package data

import (
	"context"
	"errors"
	"fmt"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/same"
)

// OnRoot runs f on root, and gives its result to every rank: a file is read once, by one rank. It is collective. If f
// fails or panics, all ranks return an error that names root and what it said.
func OnRoot[T ccl.Number](ctx context.Context, c *ccl.Comm, root int, f func() ([]T, error)) ([]T, error) {
	var bad error
	if root < 0 || root >= c.Size() {
		bad = fmt.Errorf("OnRoot: root %d of %d ranks", root, c.Size())
	}
	items := []string{fmt.Sprintf("OnRoot of %v with root %d", ccl.TypeOf[T](), root)}
	if err := same.Args(ctx, c, "data", bad, items...); err != nil {
		return nil, err
	}
	var out []T
	if c.Rank() == root {
		out, bad = call(c, f)
	}
	if err := same.Args(ctx, c, "data: OnRoot", bad); err != nil {
		return nil, err
	}
	out, err := same.Give(ctx, c, out, root)
	if err != nil {
		return nil, fmt.Errorf("data: OnRoot: %w", err)
	}
	return out, nil
}

// Readers gives each rank its own data, which few ranks read: of k ranks that follow each other the
// first one reads, by read(rank), what each of them needs, and sends it on. With k the ranks of a
// host, one process of a host reads, and no file system sees all ranks at once. It is collective. A
// reader holds two parts at a time, its own and another. In a job that MPI started, mpi.ReadAtAll
// reads for all ranks as one in its place; examples/batchfile times both.
//
// If read fails or panics, all ranks return an error that names the reader, once the other readers are done.
func Readers[T ccl.Number](ctx context.Context, c *ccl.Comm, k int, read func(rank int) ([]T, error)) ([]T, error) {
	var bad error
	if k < 1 {
		bad = fmt.Errorf("Readers: one rank in %d reads", k)
	}
	items := []string{fmt.Sprintf("Readers of %v, one in %d", ccl.TypeOf[T](), k)}
	if err := same.Args(ctx, c, "data", bad, items...); err != nil {
		return nil, err
	}
	me := c.Rank()
	reader := me - me%k
	var mine []T
	var err error
	if me == reader {
		mine, bad, err = readFor(ctx, c, min(me+k, c.Size()), read)
	} else {
		mine, err = receive[T](ctx, c, reader)
	}
	if err != nil {
		return nil, fmt.Errorf("data: Readers: %w", err)
	}
	if err := same.Args(ctx, c, "data: Readers", bad); err != nil {
		return nil, err
	}
	return mine, nil
}

// failed is sent as the length of a part that could not be read.
const failed = -1

// readFor reads this rank's part, and the parts of the following ranks up to end, to which it sends them. bad is why it
// could not read; err is why it could not send.
func readFor[T ccl.Number](ctx context.Context, c *ccl.Comm, end int,
	read func(rank int) ([]T, error)) (mine []T, bad, err error) {
	for r := end - 1; r >= c.Rank(); r-- {
		var part []T
		if bad == nil {
			if part, bad = call(c, func() ([]T, error) { return read(r) }); bad != nil {
				bad = fmt.Errorf("the part of rank %d: %w", r, bad)
			}
		}
		if r == c.Rank() {
			return part, bad, nil
		}
		n := []int{len(part)}
		if bad != nil {
			n[0] = failed
		}
		if err := ccl.Send(ctx, c, n, r); err != nil {
			return nil, bad, err
		}
		if bad == nil {
			if err := ccl.Send(ctx, c, part, r); err != nil {
				return nil, bad, err
			}
		}
	}
	return mine, bad, nil
}

// receive gets this rank's part from its reader; none if that has failed.
func receive[T ccl.Number](ctx context.Context, c *ccl.Comm, reader int) ([]T, error) {
	n := []int{0}
	if err := ccl.Recv(ctx, c, n, reader); err != nil || n[0] == failed {
		return nil, err
	}
	part := make([]T, n[0])
	return part, ccl.Recv(ctx, c, part, reader)
}

// call calls f. A panic is an error. If f ends its goroutine, as t.FailNow does, c is aborted: others wait for it.
func call[T any](c *ccl.Comm, f func() ([]T, error)) (out []T, err error) {
	returned := false
	defer func() {
		if returned {
			return
		}
		if p := recover(); p != nil {
			out, err = nil, fmt.Errorf("panic: %v", p)
			return
		}
		c.Abort(errors.New("data: the function that reads has ended its goroutine"))
	}()
	out, err = f()
	returned = true
	if err != nil {
		out = nil
	}
	return out, err
}
