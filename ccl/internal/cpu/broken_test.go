package cpu

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/group"
	"github.com/goccl/goccl/ccl/internal/links"
	"github.com/goccl/goccl/ccl/internal/plane"
	"github.com/goccl/goccl/ccl/internal/tcp"
)

// headerOf is the header of a message of the call that c is in, with what change makes of it and a checksum that is right: see
// links.HeadBytes.
func headerOf(c *Comm, bytes int, change func(b []byte)) []byte {
	b := make([]byte, links.HeadBytes)
	le := binary.LittleEndian
	le.PutUint64(b[8:], c.ID())
	le.PutUint64(b[16:], uint64(bytes))
	b[28] = 1
	mine, before := c.rank.Order.Entered(0), c.rank.Order.Entered(1)
	mine.Encode(b[40:])
	before.Encode(b[80:])
	change(b)
	copy(b, "Gccl")
	le.PutUint32(b[4:], crc32.Checksum(b[8:], links.Castagnoli))
	return b
}

// invalid makes a header one that no rank sends, each seed another.
func invalid(seed int) func(b []byte) {
	g := rand.New(rand.NewPCG(uint64(seed), 1))
	le := binary.LittleEndian
	return func(b []byte) {
		for range 1 + g.IntN(3) {
			switch g.IntN(7) {
			case 0: // another Comm
				le.PutUint64(b[8:], g.Uint64())
			case 1: // another length
				le.PutUint64(b[16:], g.Uint64()>>g.IntN(64))
			case 2: // another step
				le.PutUint32(b[24:], 50+g.Uint32()>>g.IntN(32))
			case 3: // another kind
				b[28] = []byte{0, 2, 3, 4, 255}[g.IntN(5)]
			case 4: // another call
				le.PutUint64(b[40:], le.Uint64(b[40:])+uint64(g.IntN(3))-1)
			case 5: // another call before
				for i := 80; i < len(b); i++ {
					b[i] = byte(g.Uint32())
				}
				le.PutUint64(b[40:], le.Uint64(b[40:])+1)
			case 6: // noise
				for i := 8; i < len(b); i++ {
					b[i] = byte(g.Uint32())
				}
			}
		}
		le.PutUint32(b[60:], le.Uint32(b[60:])^(1+g.Uint32N(1<<31))) // the hash of no call
	}
}

// slander leaves the call with a failure that a third rank, or none, is said to be at fault for.
func slander(code uint32, root int32) func(b []byte) {
	return func(b []byte) {
		b[28] = 3
		binary.LittleEndian.PutUint32(b[24:], code)
		binary.LittleEndian.PutUint32(b[56:], uint32(root))
	}
}

// babble sends the header to all other ranks, instead of what they wait for.
func babble(t *testing.T, c *Comm, head []byte) {
	for peer := range c.Size() {
		if peer == c.Rank() {
			continue
		}
		l, f := c.links.Ends.Link(t.Context(), peer, 0)
		if f != nil {
			continue // it has failed by now
		}
		conn := (*tcp.Conn)(reflect.ValueOf(l).Elem().FieldByName("conn").UnsafePointer())
		n, _ := conn.TrySend(head)
		assert.Contains(t, []int{0, len(head)}, n) // 0: it has closed
	}
}

// A rank whose headers make no sense, or that blames others without a reason, is the one that is blamed, by all: in its first
// call and later, of whatever size.
func TestBrokenRankIsBlamed(t *testing.T) {
	type broken struct {
		name   string
		good   int // calls before
		count  int
		change func(b []byte)
	}
	var cases []broken
	for seed := range 24 {
		cases = append(cases, broken{fmt.Sprint("seed ", seed), seed % 3, []int{100, 50_000}[seed/3%2], invalid(seed)})
	}
	roots := []int32{3, 0, 1, -1, 4, math.MinInt32}
	for code := range uint32(call.Closed) + 2 {
		root := roots[int(code)%len(roots)]
		cases = append(cases, broken{fmt.Sprintf("code %d of rank %d", code, root), int(code) % 2, 100, slander(code, root)})
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			const rank = 2
			all := commsOf(t, []string{"a", "b", "c", "d"}, testTerms(), plane.Options{Agreed: group.Agreed{PeerTimeout: time.Second}})
			faults := make([]*call.Fault, len(all))
			var wg, good sync.WaitGroup
			good.Add(len(all))
			for r, c := range all {
				wg.Go(func() {
					of := func() *call.Call {
						return callOf(call.AllReduce, -1, tc.count, make([]int32, tc.count), make([]int32, tc.count))
					}
					ok := true
					for range tc.good {
						ok = assert.Nil(t, c.one(t.Context(), of())) && ok
					}
					good.Done()
					good.Wait() // before the rank breaks, for a rank ahead would tell one that is still in these
					if !ok {
						return
					}
					if k := of(); r == rank {
						assert.Nil(t, watched(c).Enter(k, false))
						babble(t, c, headerOf(c, 4*tc.count, tc.change))
					} else {
						faults[r] = c.one(t.Context(), k)
					}
				})
			}
			done := make(chan struct{})
			go func() { wg.Wait(); close(done) }()
			select {
			case <-done:
			case <-time.After(time.Minute):
				require.Fail(t, "a call does not end")
			}
			for r, f := range faults {
				if r != rank && assert.NotNil(t, f, "rank %d", r) {
					assert.Equal(t, rank, f.Peer, "rank %d: %+v", r, f)
				}
			}
		})
	}
}
