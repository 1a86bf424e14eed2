package ccl

import (
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

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
