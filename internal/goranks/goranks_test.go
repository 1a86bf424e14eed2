package goranks

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// Processes with different numbers of ranks, each with one bootstrap, which is a crew itself.
func TestAllGather(t *testing.T) {
	counts := []int{2, 1, 4}
	ranksOf := func(p int) int { return counts[p] }
	job := New(len(counts), func(int) int { return len(counts) }, func(_ context.Context, mine []byte) ([][]byte, error) { return [][]byte{mine}, nil })
	var wg sync.WaitGroup
	rank := 0
	for p, n := range counts {
		c := New(n, ranksOf, func(ctx context.Context, mine []byte) ([][]byte, error) { return job.AllGather(ctx, p, mine) })
		for i := range n {
			me := rank
			rank++
			wg.Go(func() {
				for round := range 3 {
					all, err := c.AllGather(t.Context(), i, fmt.Append(nil, me, round))
					if err != nil || len(all) != 7 {
						t.Errorf("%d values, %v", len(all), err)
						return
					}
					for r, v := range all {
						if want := fmt.Sprint(r, round); string(v) != want {
							t.Errorf("rank %d got %q from %d, want %q", me, v, r, want)
						}
					}
				}
			})
		}
	}
	wg.Wait()
}

func TestErrors(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	broken := errors.New("the store is gone")
	one := func(int) int { return 1 }
	for _, tc := range []struct {
		name   string
		ctx    context.Context
		n      int
		gather func(context.Context, []byte) ([][]byte, error)
		want   error
	}{
		{"given up", ended, 2, nil, context.Canceled},
		{"bootstrap fails", t.Context(), 1, func(context.Context, []byte) ([][]byte, error) { return nil, broken }, broken},
		{"another number of ranks", t.Context(), 1, func(_ context.Context, mine []byte) ([][]byte, error) {
			return [][]byte{mine, pack([][]byte{{1}, {2}})}, nil
		}, ErrValues},
	} {
		t.Run(tc.name, func(t *testing.T) {
			all, err := New(tc.n, one, tc.gather).AllGather(tc.ctx, 0, []byte("x"))
			require.ErrorIs(t, err, tc.want)
			require.Nil(t, all)
		})
	}
}

func TestPack(t *testing.T) {
	parts := [][]byte{[]byte("a"), {}, make([]byte, 300)}
	got, err := unpack(pack(parts), 3)
	require.NoError(t, err)
	require.Equal(t, parts, got)
	for _, n := range []int{2, 4} {
		_, err = unpack(pack(parts), n)
		require.ErrorIs(t, err, ErrValues)
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add([]byte{1, 'a', 0}, 2)
	f.Fuzz(func(t *testing.T, b []byte, n int) {
		if n < 0 || n > 100 {
			return
		}
		if parts, err := unpack(b, n); err == nil && len(parts) != n {
			t.Errorf("%d parts, want %d", len(parts), n)
		}
	})
}
