package ccl

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Many wait at once, each for its own number or the end of a context; all are woken, and the bell keeps no more channels
// than have waited at a time.
func TestBell(t *testing.T) {
	var (
		mu   sync.Mutex
		b    bell
		at   int
		all  sync.WaitGroup
		most = 50
	)
	ctx, cancel := context.WithCancel(t.Context())
	for i := range most {
		all.Go(func() {
			for round := range 20 {
				mu.Lock()
				assert.True(t, b.wait(&mu, ctx.Done(), func() bool { return at >= round*10+i%10 }))
				mu.Unlock()
			}
		})
		if i%5 == 0 {
			all.Go(func() {
				mu.Lock()
				defer mu.Unlock()
				assert.False(t, b.wait(&mu, ctx.Done(), func() bool { return false }))
			})
		}
	}
	for done := false; !done; {
		mu.Lock()
		at++
		b.ring()
		done = at == 200
		mu.Unlock()
		time.Sleep(10 * time.Microsecond)
	}
	cancel()
	all.Wait()
	assert.Empty(t, b.waiting)
	assert.LessOrEqual(t, len(b.idle), most+most/5)
	for _, ch := range b.idle {
		assert.Empty(t, ch)
	}
}
