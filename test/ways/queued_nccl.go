//go:build nccl && cgo && linux

package main

import (
	"context"
	"errors"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/cuda"
)

// queued makes calls between two memories of the device, on a Queue that the program has.
func queued(ctx context.Context, dir string) error {
	c, err := ccl.NewComm(ctx, boot.Local(1)[0], &ccl.Options{Backend: "nccl"})
	if err != nil {
		return err
	}
	defer c.Close()
	d, err := cuda.At(0)
	if err != nil {
		return err
	}
	s, err := d.NewStream()
	if err != nil {
		return err
	}
	defer s.Close()
	dst, err := cuda.Alloc[float32](d, 1024)
	if err != nil {
		return err
	}
	src, err := cuda.Alloc[float32](d, 1024)
	if err != nil {
		return err
	}
	q, to, from := c.On(s), ccl.BufOfMemory(dst), ccl.BufOfMemory(src)
	seen := ways{}
	for range 20 {
		var last ccl.Work
		err := seen.pass(func() error {
			last = q.AllReduce(to, from, ccl.Sum)
			return nil
		})
		if err = errors.Join(err, last.Wait(ctx)); err != nil {
			return err
		}
	}
	return errors.Join(seen.write(dir), dst.Free(), src.Free())
}
