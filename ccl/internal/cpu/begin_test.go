package cpu

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/internal/reduce"
)

// nearWrap is a value of counters of 32 bits a few hundred steps before they begin again at 0. It divides by the depth
// of every ring that they count through.
const nearWrap = math.MaxUint32 - 255

// each runs f as each rank, and waits for all of them.
func each(t *testing.T, all []*Comm, f func(c *Comm) error) {
	t.Helper()
	var wg sync.WaitGroup
	for _, c := range all {
		wg.Go(func() { assert.NoError(t, f(c)) })
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("not done after a minute")
	}
}

// run makes k, as an error.
func run(t *testing.T, c *Comm, k *call.Call) error {
	k.Seal()
	if f := c.one(t.Context(), k); f != nil {
		return f
	}
	return nil
}

// Messages that go by rendezvous, in cells, in the ring and in chunks keep their order and data where the numbers of a
// pipe's records begin again at 0.
func TestRecordsWrap(t *testing.T) {
	for _, start := range []uint32{1000, nearWrap, math.MaxUint32} {
		for _, n := range []int{8, 900, 5000, 100_000} {
			t.Run(fmt.Sprintf("%d bytes from record %d on", n, start), func(t *testing.T) {
				all := comms(t, []string{"a", "a"})
				for _, c := range all {
					c.rank.Order.BeginAt(start)
				}
				each(t, all, func(c *Comm) error {
					for i := range 400 {
						peer := 1 - c.Rank()
						k := &call.Call{Head: op.Head{Record: call.Record{Count: uint64(n), Kind: call.SendRecv, Root: int32(peer)}, To: peer}, Elem: 1, Src: bytesFrom(c.Rank()+i, n), Dst: make([]byte, n)}
						if err := run(t, c, k); err != nil {
							return fmt.Errorf("message %d: %w", i, err)
						}
						if string(k.Dst) != string(bytesFrom(peer+i, n)) {
							return fmt.Errorf("message %d has other data", i)
						}
					}
					return nil
				})
			})
		}
	}
}

// Collectives of all sorts of ways agree and have the right data where numbers of rounds and of collectives begin again
// at 0; a call that differs is found there, too.
func TestRoundsWrap(t *testing.T) {
	for _, ranks := range []int{1, 2, 3} {
		for _, start := range []uint32{1000, nearWrap, math.MaxUint32} {
			t.Run(fmt.Sprintf("%d ranks from round %d on", ranks, start), func(t *testing.T) {
				hosts := make([]string, ranks)
				for i := range hosts {
					hosts[i] = "a"
				}
				all := comms(t, hosts)
				for _, c := range all {
					c.rank.Order.BeginAt(start)
				}
				each(t, all, func(c *Comm) error {
					for i := range 400 {
						n := []int{1, 100, 3000, 40_000}[i%4]
						x := make([]byte, n)
						for j := range x {
							x[j] = byte(i + c.Rank())
						}
						kind := []call.Kind{call.AllReduce, call.Broadcast, call.AllGather}[i%3]
						k := &call.Call{Head: op.Head{Record: call.Record{Seq: uint64(i + 1), Count: uint64(n), Kind: kind, Root: -1}}, Elem: 1, Src: x, Dst: make([]byte, n)}
						want := byte(i)
						switch kind {
						case call.AllReduce:
							k.Fold, k.Stream, k.Both = reduce.For(op.Uint8, op.Max), reduce.ForStream(op.Uint8, op.Max), reduce.ForBoth(op.Uint8, op.Max)
							want = byte(i + ranks - 1)
							if want < byte(i) { // the largest of bytes that have begun again
								want = math.MaxUint8
							}
						case call.Broadcast:
							k.Root, k.Dst = 0, x
						case call.AllGather:
							k.Dst = make([]byte, n*ranks)
						}
						if err := run(t, c, k); err != nil {
							return fmt.Errorf("call %d, %v of %d bytes: %w", i, kind, n, err)
						}
						if k.Dst[0] != want || kind != call.AllGather && k.Dst[n-1] != want || kind == call.AllGather && k.Dst[n*ranks-1] != byte(i+ranks-1) {
							return fmt.Errorf("call %d, %v of %d bytes has %d, not %d", i, kind, n, k.Dst[0], want)
						}
					}
					if place, _ := c.rank.Share.Local.Collective(c.rank.Share.Me); place != c.rank.Order.Calls || c.rank.Order.Calls != uint64(start)+400 {
						return fmt.Errorf("collective %d is told as %d", c.rank.Order.Calls, place)
					}
					return nil
				})
				if ranks == 1 {
					return
				}
				each(t, all, func(c *Comm) error {
					k := &call.Call{Head: op.Head{Record: call.Record{Seq: 401, Kind: call.Barrier, Root: -1, Count: uint64(c.Rank())}}}
					k.Seal()
					if f := c.one(t.Context(), k); f == nil || f.Code != call.Mismatch {
						return fmt.Errorf("calls that differ: %v", f)
					}
					return nil
				})
			})
		}
	}
}

// bytesFrom are n bytes that differ with where in a stream they lie.
func bytesFrom(first, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		x := first + i
		b[i] = byte(x*31 + x>>8*17)
	}
	return b
}
