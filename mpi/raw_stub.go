//go:build !mpi || !cgo

package mpi

import (
	"math"
	"os"
	"time"
)

// What one rank can do without MPI. The functions are those of raw_mpi.go.

// load refuses to be one rank of many.
func load(l launch) error {
	if l.size > 1 {
		return failed("Init", ErrLibrary,
			"%s started this process as one of %d ranks (%s is set), but it was built without MPI: build it with -tags mpi and CGO_ENABLED=1",
			l.name, l.size, l.because)
	}
	process.version, process.versionAll = "no MPI", "no MPI: built without the tag mpi, or without cgo; one rank"
	process.path = "none"
	return nil
}

func begin(Level) error {
	process.level, process.large, process.maxTag = Multiple, true, math.MaxInt32
	return nil
}

func end() error { return nil }

func abort(_ uintptr, code int) { os.Exit(code) }

func predefined(which int) uintptr { return uintptr(1 + which) }

func (c *Comm) identify() error {
	c.rank, c.size = 0, 1
	return nil
}

func (c *Comm) make(_ string, what, color, _ int) (uintptr, error) {
	if what == commFree || what == commSplit && color < 0 {
		return 0, nil
	}
	return 3, nil
}

func (c *Comm) run(k *Call) (st Status, large bool, err error) {
	switch k.Kind {
	case kindDup:
		return Status{Count: 3}, false, nil
	case KindSendRecv:
		if (k.To == ProcNull) != (k.Root == ProcNull) {
			return st, false, refused(k.Kind, ErrRank, "a single rank can exchange only with itself")
		}
		if k.To == ProcNull {
			return Status{Source: ProcNull, Tag: AnyTag}, false, nil
		}
		if k.M > k.N {
			return st, false, refused(k.Kind, ErrTruncate, "%d elements sent, room for %d", k.M, k.N)
		}
		move(k.Dst, k.Src, k.M*k.Type.Size())
		return Status{0, k.Tag, k.M}, false, nil
	case KindSend, KindRecv, kindProbe:
		peer := k.To
		if k.Kind != KindSend {
			peer = k.Root
		}
		if peer != ProcNull {
			return st, false, refused(k.Kind, ErrRank, "no other rank in a job of one rank")
		}
		return Status{Source: ProcNull, Tag: AnyTag}, false, nil
	}
	if k.Kind != KindBarrier && k.Kind != KindBcast && k.Kind != KindExscan && !k.InPlace {
		n := k.N
		if len(k.DC) > 0 {
			n = k.DC[0]
		}
		move(k.Dst, k.Src, n*k.Type.Size())
	}
	return st, false, nil
}

const startsSendRecv = true

// part is a call that was done at once.
type part struct {
	kind Kind
	st   Status
}

func (p *part) receives() bool { return p.kind >= KindRecv && p.kind != KindExscan }

func (c *Comm) begin(k *Call) (part, bool, error) {
	st, _, err := c.run(k)
	return part{k.Kind, st}, false, err
}

func (c *Comm) test(p *part, _ bool) (bool, Status, error) { return true, p.st, nil }

func (*part) cancel() {}

// probe finds what is from ProcNull: no message, and at once.
func (c *Comm) probe(k *Call) (bool, Status, error) {
	st, _, err := c.run(k)
	return err == nil, st, err
}

func makePlaced() error { return nil }

func processorName() (string, error) { return os.Hostname() }

var started = time.Now()

func wtime() float64 { return time.Since(started).Seconds() }
