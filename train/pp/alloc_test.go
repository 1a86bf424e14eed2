package pp_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/pp"
)

// idle is a stage that computes nothing.
type idle struct{ *counter }

func (idle) Run(context.Context, pp.Step) error { return nil }

// After the third step Run allocates nothing, on any rank: AllocsPerRun counts for the whole process.
func TestRunAllocatesNothing(t *testing.T) {
	for _, tc := range schedules {
		for _, n := range []int{1, 2, 3} {
			t.Run(fmt.Sprintf("%s, %d stages", tc.name, n), func(t *testing.T) {
				ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
					p := newPipeline(t, c, &pp.Options{Chunks: tc.chunks})
					st, ctx := idle{newCounter(c, tc.chunks)}, t.Context()
					step := func() {
						if _, err := p.Run(ctx, tc.s, 2*n, st); err != nil {
							t.Error(err)
						}
					}
					require.Zero(t, ccltest.Allocs(t, c, 5, step))
					require.NoError(t, ccl.Barrier(ctx, c))
					require.NoError(t, p.Close())
				})
			})
		}
	}
}

// Schedules that take turns, micro batches that change, and closures made anew are told apart.
func TestSchedulesTakeTurns(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		p := newPipeline(t, c, nil)
		st := newCounter(c, 1)
		for i, tc := range []struct {
			s      pp.Schedule
			micros int
		}{{pp.GPipe, 4}, {pp.OneFOneB, 4}, {pp.OneFOneB, 6}, {pp.Interleaved(1), 6}, {pp.Interleaved(1), 4}, {pp.GPipe, 4}, {pp.GPipe, 4}} {
			st.ran = nil
			_, err := p.Run(t.Context(), tc.s, tc.micros, st)
			require.NoError(t, err)
			var want []pp.Step
			for x := range tc.s(2, c.Rank(), tc.micros) {
				want = append(want, x)
			}
			require.Equal(t, want, st.ran, "%d", i)
		}
		_, err := p.Run(t.Context(), pp.GPipe, 3+c.Rank(), st)
		require.EqualError(t, err, "pp: ranks differ: rank 0 has 3 micro batches, rank 1 has 4 micro batches")
		_, err = p.Run(t.Context(), pp.GPipe, 3, st)
		require.NoError(t, err)
		ccltest.Barrier(t, c)
		require.NoError(t, p.Close())
	})
}
