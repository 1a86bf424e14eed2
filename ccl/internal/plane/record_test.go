package plane

import (
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/ordered"
	"github.com/goccl/goccl/ccl/internal/plane/event"
	"github.com/goccl/goccl/ccl/internal/plane/status"
	"github.com/goccl/goccl/ccl/internal/region"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/internal/op"
)

// A rank that makes calls as fast as it can is looked at by another: what that reads of a call is all of that call.
func TestRecordsAreWhole(t *testing.T) {
	const n = 3
	c := &Share{N: n, Local: region.New(0, shm.Aligned(region.Bytes(n)), n)}
	var over atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for seq := uint64(1); !over.Load(); seq++ {
			r := call.Record{Seq: seq, Count: seq, Start: int64(seq), Root: int32(seq), Kind: call.Kind(seq % 7)}
			op.StoreRecord(c.Local.Call(1, seq), &r, seq, uint32(seq), r.Kind)
			ordered.Store((*uint64)(unsafe.Pointer(c.Local.Entered(1))), seq<<32|seq&0xffffffff)
		}
	}()
	read, looks := 0, 2_000_000
	if testing.Short() {
		looks /= 10
	}
	for i := 0; i < looks || read == 0; i++ {
		seq := c.Local.Entered(1).Load()>>32 - uint64(i)%uint64(c.Local.Kept)
		r, ok := c.Local.Made(1, seq)
		if !ok {
			continue
		}
		read++
		want := call.Record{Place: seq, Seq: seq, Count: seq, Start: int64(seq), Root: int32(seq), Hash: uint32(seq), Kind: call.Kind(seq % 7)}
		if r != want {
			over.Store(true)
			<-done
			require.Equal(t, want, r, "look %d", i)
		}
	}
	over.Store(true)
	<-done
	t.Logf("%d of %d looks had a record", read, looks)
}

// The number of a call in reports has 64 bits, as it is kept, as it is told and as it travels.
func TestNumbersBeyond32Bits(t *testing.T) {
	const number = 1<<32 + 7
	m := &Member{Share: Share{N: 1, Local: region.New(0, shm.Aligned(region.Bytes(1)), 1)}}
	join(m)
	c := &m.Order
	c.Enter(&call.Call{Head: op.Head{Record: call.Record{Seq: number, Kind: call.Barrier}}})
	r := c.Entered(0)
	require.EqualValues(t, number, r.Seq)

	e := event.New(8, call.Mismatch, 5, 3, 2, nil)
	e.Call.Seq, e.Theirs.Seq = r.Seq, r.Seq
	var e2 event.Event
	require.NoError(t, e2.Decode(e.Encode(make([]byte, event.Wire))))
	require.Equal(t, e, e2)

	s := status.Status{Comm: 8, Calls: 41, Rank: 3, Size: 8, World: 7, Peer: 5, For: 6, Doing: status.Waits}
	s.Call.Seq = r.Seq
	var s2 status.Status
	require.NoError(t, s2.Decode(s.Encode(make([]byte, status.Wire))))
	require.Equal(t, s, s2)
}
