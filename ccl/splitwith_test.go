package ccl_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// Each new Comm has the options that its own ranks have set, and c keeps its own.
func TestSplitWith(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	inTime(t, 4, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		mu.Lock()
		clear(seen)
		mu.Unlock()
		meet(ctx)
		part, err := c.SplitWith(ctx, c.Rank()%2, -c.Rank(), func(o *ccl.Options) {
			o.Name = []string{"dp", "tp"}[c.Rank()%2]
			o.RankOrder = c.Rank()%2 == 0 // colors may differ
			o.Timeout = time.Duration(1+c.Rank()%2) * 300 * time.Millisecond
			o.OnCall = func(k ccl.Observation) {
				mu.Lock()
				defer mu.Unlock()
				seen[k.Comm+" "+k.Call.Kind.String()]++
			}
		})
		require.NoError(t, err)
		defer part.Close()
		assert.Equal(t, []string{"dp", "tp"}[c.Rank()%2], part.Name())
		assert.Equal(t, 1-c.Rank()/2, part.Rank())
		assert.NoError(t, ccl.Barrier(ctx, part))
		works(ctx, t, c)
		meet(ctx)
		mu.Lock()
		assert.Equal(t, map[string]int{"dp Barrier": 2, "tp Barrier": 2}, seen)
		mu.Unlock()
		meet(ctx)

		sub, err := part.Split(ctx, 3, 0) // whose options are those of its parent, but for the name
		require.NoError(t, err)
		defer sub.Close()
		assert.Equal(t, part.Name()+"/3", sub.Name())
		if part.Rank() == 0 {
			began := time.Now()
			wants(t, ccl.Barrier(ctx, sub), ccl.ErrTimeout)
			assert.Less(t, time.Since(began), 10*time.Second)
		} else {
			<-sub.Done()
		}
	})
}

// RankOrder of a part holds there: the bits are those of adding rank by rank.
func TestSplitWithRankOrder(t *testing.T) {
	const n = 5
	everywhere(t, n, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		part, err := c.SplitWith(ctx, 0, 0, func(o *ccl.Options) { o.RankOrder = true })
		require.NoError(t, err)
		defer part.Close()
		values := []float32{1e8, 1, -1e8, 1, 0.5}
		want := float32(0)
		for _, v := range values {
			want += v
		}
		for _, count := range []int{1, 1000, 100_000} {
			x := slices.Repeat([]float32{values[c.Rank()]}, count)
			assert.NoError(t, ccl.AllReduce(ctx, part, x, x, ccl.Sum))
			assert.Equal(t, slices.Repeat([]float32{want}, count), x)
		}
	})
}

// What is wrong on one rank is an error on all, the same, and no failure.
func TestSplitWithRefused(t *testing.T) {
	for _, tc := range []struct {
		name string
		set  func(r int, o *ccl.Options)
		code ccl.Code
		want string
	}{
		{"Backend", func(r int, o *ccl.Options) { o.Backend = "mpi" }, ccl.ErrArgument, "on rank 0: Options.Backend belongs to the whole job"},
		{"PeerTimeout on one", func(r int, o *ccl.Options) {
			if r == 2 {
				o.PeerTimeout = time.Hour
			}
		}, ccl.ErrArgument, "on rank 2: Options.PeerTimeout belongs to the whole job"},
		{"Wire", func(r int, o *ccl.Options) { o.Wire = "auth" }, ccl.ErrArgument, "on rank 0: Options.Wire belongs to the whole job"},
		{"Device", func(r int, o *ccl.Options) { o.Device = new(int) }, ccl.ErrArgument, "on rank 0: Options.Device"},
		{"Check", func(r int, o *ccl.Options) { o.Check = 7 }, ccl.ErrArgument, "on rank 0: Check is 7"},
		{"Timeouts", func(r int, o *ccl.Options) { o.Timeout = time.Duration(1+r/2) * time.Minute }, ccl.ErrVersion,
			"ranks 0 and 2, both of color 0, have set different Options.Timeout"},
		{"RankOrder", func(r int, o *ccl.Options) { o.RankOrder = r == 3 }, ccl.ErrVersion, "ranks 1 and 3, both of color 1, have set different Options.RankOrder"},
		{"levels", func(r int, o *ccl.Options) { o.Check = ccl.Check(r / 2) }, ccl.ErrVersion, "Options.Check"},
		{"Staged", func(r int, o *ccl.Options) { o.Staged = r < 2 }, ccl.ErrVersion, "Options.Staged"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			everywhere(t, 4, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
				part, err := c.SplitWith(ctx, c.Rank()%2, 0, func(o *ccl.Options) { tc.set(c.Rank(), o) })
				e := wants(t, err, tc.code)
				assert.Nil(t, part)
				assert.Contains(t, e.Error(), fmt.Sprintf("ccl: rank %d: SplitWith: ", c.Rank()))
				assert.Contains(t, e.Error(), tc.want)
				assert.NoError(t, c.Err())
				works(ctx, t, c)
			})
		})
	}
}

// What ranks without a new Comm would set does not matter; zeros are defaults; nil changes nothing.
func TestSplitWithLittle(t *testing.T) {
	device := 0
	world(t, 3, nil, func(int) *ccl.Options { return &ccl.Options{Device: &device, Name: "all"} }, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		assert.Equal(t, "all", c.Name())
		color := 0
		if c.Rank() == 2 {
			color = -1
		}
		part, err := c.SplitWith(ctx, color, 0, func(o *ccl.Options) {
			o.RankOrder = c.Rank() == 2
			o.Timeout, o.PeerTimeout, o.Log = 0, 0, nil
			*o.Device = 0
		})
		assert.NoError(t, err)
		assert.Equal(t, c.Rank() == 2, part == nil)
		if part != nil {
			works(ctx, t, part)
			assert.Equal(t, "all/0", part.Name())
			assert.NoError(t, part.Close())
		}
		again, err := c.SplitWith(ctx, 4, 0, nil)
		assert.NoError(t, err)
		assert.Equal(t, "all/4", again.Name())
		works(ctx, t, again)
		assert.NoError(t, again.Close())
	})
}

// Split is another call than SplitWith.
func TestSplitWithAndSplit(t *testing.T) {
	everywhere(t, 2, &ccl.Options{Timeout: 20 * time.Second}, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		var err error
		if c.Rank() == 0 {
			_, err = c.Split(ctx, 0, 0)
		} else {
			_, err = c.SplitWith(ctx, 0, 0, nil)
		}
		wants(t, err, ccl.ErrMismatch)
	})
}

// Without a Log of its own a part of the job logs as NewComm without one: what GOCCL_LOG asks for.
func TestSplitWithoutLog(t *testing.T) {
	t.Setenv("GOCCL_LOG", "error")
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		part, err := c.SplitWith(ctx, 0, 0, func(o *ccl.Options) { o.Log = nil })
		require.NoError(t, err)
		defer part.Close()
		again, err := part.SplitWith(ctx, 0, 0, func(o *ccl.Options) {
			assert.False(t, o.Log.Enabled(ctx, slog.LevelWarn))
			assert.True(t, o.Log.Enabled(ctx, slog.LevelError))
		})
		require.NoError(t, err)
		again.Close()
	})
}
