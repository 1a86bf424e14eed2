package ccl

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/call"
)

// span is a time that a device has taken, which counts how often it was asked.
type span struct{ asked int }

func (s *span) Took() (time.Duration, bool) {
	s.asked++
	return 7 * time.Millisecond, true
}

// The time of a span is that of all calls that were handed over with it, and of no other; it is asked once.
func TestDeviceTime(t *testing.T) {
	d := &deviceStream{}
	d.handed.ticket = 2
	for seq := range uint64(5) {
		d.handed.awaited = append(d.handed.awaited, awaited{record: call.Record{Seq: seq + 1}})
	}
	s := &span{}
	d.timed(s)
	for i, a := range d.handed.awaited {
		want := time.Duration(0)
		if i >= 2 {
			want = 7 * time.Millisecond
		}
		assert.Equal(t, want, a.time.known(), "%d", i)
		assert.Equal(t, want, a.time.known(), "%d", i)
	}
	assert.Equal(t, 1, s.asked)
}

// A teller tells everything once, in order, one at a time, whoever tells it meanwhile, and whatever becomes of the goroutine.
func TestTeller(t *testing.T) {
	var tl teller
	var mu sync.Mutex
	var got []uint64
	inside := 0
	onCall := func(o Observation) {
		mu.Lock()
		inside++
		assert.Equal(t, 1, inside, "at a time")
		mu.Unlock()
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			inside--
			got = append(got, o.Call.Seq)
		}()
		if o.Call.Seq%100 == 7 {
			runtime.Goexit()
		}
	}
	tl.tell(nil, []Observation{{}})
	tl.tell(onCall, nil)
	assert.False(t, tl.busy)
	const n = 1000
	for i := range uint64(n) {
		tl.tell(onCall, []Observation{{Call: Call{Seq: 2 * i}}, {Call: Call{Seq: 2*i + 1}}})
	}
	assert.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(got) == 2*n
	}, 10*time.Second, time.Millisecond)
	mu.Lock()
	defer mu.Unlock()
	for i, seq := range got {
		if seq != uint64(i) {
			t.Fatalf("%d is told in place %d", seq, i)
		}
	}
}
