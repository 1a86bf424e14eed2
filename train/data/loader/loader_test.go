package loader_test

import (
	"context"
	"errors"
	"os"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/train/data"
	"github.com/goccl/goccl/train/data/loader"
)

// epoch is what s yields in its first one.
func epoch(t *testing.T, s data.Sampler) (items []int) {
	all, err := s.Epoch(0, 0)
	require.NoError(t, err)
	for _, x := range all {
		items = append(items, x)
	}
	return items
}

// Values come in order, with their positions, and no more than the bound are loaded ahead of the one in use.
func TestPrefetch(t *testing.T) {
	s := data.Sampler{N: 200, Rank: 1, Size: 2, Seed: 3}
	want := epoch(t, s)
	for _, ahead := range []int{1, 2, 5, 1000} {
		var begun, running, used atomic.Int64
		load := func(_ context.Context, item int) (int, error) {
			running.Add(1)
			defer running.Add(-1)
			if n := begun.Add(1) - used.Load(); n > int64(ahead)+1 {
				t.Errorf("%d items in memory, of %d ahead and one in use", n, ahead)
			}
			runtime.Gosched()
			return item * item, nil
		}
		// In three parts, each of which goes on from the last value that was used.
		var got []int
		consumed := 0
		for part := 1; part <= 3; part++ {
			items, err := s.Epoch(0, consumed)
			require.NoError(t, err)
			begun.Store(0)
			used.Store(0)
			for x, err := range loader.Prefetch(t.Context(), items, ahead, load) {
				require.NoError(t, err)
				got = append(got, x.Value)
				require.Equal(t, 2*len(got), x.Consumed)
				consumed = x.Consumed
				used.Add(1)
				if len(got) == 30*part && part < 3 {
					break
				}
			}
			require.Zero(t, running.Load(), "the loop has ended, and its loads")
		}
		require.Len(t, got, len(want))
		for i, x := range want {
			require.Equal(t, x*x, got[i])
		}
	}
}

// As many loads run at once as the bound: none ends before all have begun.
func TestPrefetchIsParallel(t *testing.T) {
	const ahead = 4
	items, err := data.Sampler{N: 4 * ahead}.Epoch(0, 0)
	require.NoError(t, err)
	begun, all := make(chan struct{}, 100), make(chan struct{})
	go func() {
		for range ahead {
			<-begun
		}
		close(all)
	}()
	n := 0
	for _, err := range loader.Prefetch(t.Context(), items, ahead, func(context.Context, int) (int, error) {
		begun <- struct{}{}
		<-all
		return 0, nil
	}) {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 4*ahead, n)
}

// What goes wrong with an item is heard in its place, after those before it, and is the last that is heard.
func TestPrefetchFails(t *testing.T) {
	for _, tc := range []struct {
		name string
		bad  func() (int, error)
		want string
		is   error
	}{
		{"an error", func() (int, error) { return 0, os.ErrPermission }, "data/loader: the item before position 4: permission denied", os.ErrPermission},
		{"a panic", func() (int, error) { panic("no data") }, "data/loader: the item before position 4: panic: no data", nil},
		{"an end of the goroutine", func() (int, error) { runtime.Goexit(); return 0, nil }, "data/loader: the function that loads has ended its goroutine", nil},
	} {
		for _, ahead := range []int{1, 3, 10} {
			items, err := data.Sampler{N: 8}.Epoch(0, 0)
			require.NoError(t, err)
			fourth := epoch(t, data.Sampler{N: 8})
			good := 0
			var failed []error
			for x, err := range loader.Prefetch(t.Context(), items, ahead, func(_ context.Context, item int) (int, error) {
				if item == fourth[3] {
					return tc.bad()
				}
				return item, nil
			}) {
				if err != nil {
					failed = append(failed, err)
					continue
				}
				good++
				require.Equal(t, good, x.Consumed)
			}
			require.Equal(t, 3, good, tc.name)
			require.Len(t, failed, 1, tc.name)
			require.EqualError(t, failed[0], tc.want)
			if tc.is != nil {
				require.ErrorIs(t, failed[0], tc.is)
			}
		}
	}
	for _, err := range loader.Prefetch(t.Context(), func(func(int, int) bool) {}, 0, func(context.Context, int) (int, error) { return 0, nil }) {
		require.EqualError(t, err, "data/loader: Prefetch of 0 items ahead; at least 1")
	}
}

// The end of the context ends loads that wait, and the loop, with the context's error.
func TestPrefetchEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	items, err := data.Sampler{N: 8}.Epoch(0, 0)
	require.NoError(t, err)
	var last error
	for x, err := range loader.Prefetch(ctx, items, 2, func(ctx context.Context, item int) (int, error) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		return item, nil
	}) {
		if last = err; err == nil && x.Consumed == 3 {
			cancel()
		}
	}
	require.ErrorIs(t, last, context.Canceled)
	// A load that waits for its context does not keep the loop from being left.
	loop, err := data.Sampler{N: 8}.Epoch(0, 0)
	require.NoError(t, err)
	first := errors.New("none")
	for _, err := range loader.Prefetch(t.Context(), loop, 8, func(ctx context.Context, item int) (int, error) {
		if item%2 == 0 {
			<-ctx.Done()
			return 0, ctx.Err()
		}
		return item, os.ErrInvalid
	}) {
		first = err
		break
	}
	require.Error(t, first)
}
