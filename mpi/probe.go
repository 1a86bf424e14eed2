package mpi

import (
	"context"
	"runtime"
	"time"

	"github.com/goccl/goccl/internal/backoff"
)

// Probe waits for a message from rank from, or AnySource, with that tag, or AnyTag, and says what
// it is without receiving it: the Status has its source, its tag and its length in elements of T,
// -1 if it is no whole number of them. So a receiver can make room first:
//
//	st, err := mpi.Probe[float32](ctx, c, mpi.AnySource, mpi.AnyTag)
//	buf := make([]float32, st.Count)
//	_, err = mpi.Recv(ctx, c, buf, st.Source, st.Tag)
//
// Of several goroutines that receive from one communicator with the same tag, another can take the
// message in between. If ctx ends first nothing is lost, and the communicator stays usable.
func Probe[T Number](ctx context.Context, c *Comm, from, tag int) (Status, error) {
	k, err := probe[T](c, from, tag)
	switch {
	case err != nil:
		return Status{}, err
	case ctx.Err() != nil:
		return Status{}, notBegun(&k, ctx.Err())
	case ctx.Done() == nil && process.level == Multiple:
		st, _, err := c.run(&k)
		return st, err
	}
	wait := backoff.Sleep{First: time.Microsecond, Most: time.Millisecond}
	for i := 0; ; i++ {
		found, st, err := c.probe(&k)
		if found || err != nil {
			return st, err
		}
		if err := ctx.Err(); err != nil {
			return Status{}, &Error{Op: "Probe", Class: ErrAbandoned, Text: "no such message has come", Err: err}
		}
		if i < 100 {
			runtime.Gosched()
		} else {
			wait.Next()
		}
	}
}

// Iprobe is Probe without the wait: it says whether there is such a message now.
func Iprobe[T Number](c *Comm, from, tag int) (found bool, st Status, err error) {
	k, err := probe[T](c, from, tag)
	if err != nil {
		return false, Status{}, err
	}
	return c.probe(&k)
}

func probe[T Number](c *Comm, from, tag int) (Call, error) {
	k := Call{Kind: kindProbe, Type: TypeOf[T](), Root: from, Tag: tag}
	if err := c.ready("Probe"); err != nil {
		return k, err
	}
	return k, k.checkPeers(c.size)
}
