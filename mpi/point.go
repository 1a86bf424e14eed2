package mpi

import (
	"context"
	"runtime"
)

// Send sends buf to rank to. It returns when buf may be used again, which may be before the
// message is received.
func Send[T Number](ctx context.Context, c *Comm, buf []T, to, tag int) error {
	k := send(buf, to, tag)
	return run(ctx, c, &k, nil)
}

func send[T Number](buf []T, to, tag int) Call {
	k := typed(KindSend, nil, buf)
	k.N, k.To, k.Tag = len(buf), to, tag
	return k
}

// Recv receives a message of at most len(buf) elements from rank from, or AnySource, with that
// tag, or AnyTag.
func Recv[T Number](ctx context.Context, c *Comm, buf []T, from, tag int) (Status, error) {
	k := recv(buf, from, tag)
	return receive(ctx, c, &k)
}

func recv[T Number](buf []T, from, tag int) Call {
	k := typed(KindRecv, buf, nil)
	k.N, k.Root, k.Tag = len(buf), from, tag
	return k
}

func receive(ctx context.Context, c *Comm, k *Call) (Status, error) {
	st, err := c.Do(ctx, k)
	runtime.KeepAlive(k)
	return st, err
}

// SendRecv sends src to rank to while it receives dst from rank from.
func SendRecv[T Number](ctx context.Context, c *Comm, dst []T, from int, src []T, to, tag int) (Status, error) {
	k := typed(KindSendRecv, dst, src)
	k.N, k.M, k.Root, k.To, k.Tag = len(dst), len(src), from, to, tag
	return receive(ctx, c, &k)
}
