//go:build fault && linux

package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	inject "github.com/goccl/goccl/ccl/internal/fault"
)

// formed is a Comm of all ranks of world whose small calls have a form: so many ranks to a group, and 1000 more for a tree.
func formed(t testing.TB, world *ccl.Comm, form int) *ccl.Comm {
	require.NoError(t, inject.Plan(fmt.Sprintf("cpu.form:1:from:%d", form)))
	c, err := world.Split(t.Context(), 0, world.Rank())
	require.NoError(t, err)
	require.NoError(t, inject.Plan(""))
	return c
}

// Processes make all small calls in every form.
func TestFormsOfProcesses(t *testing.T) {
	for _, n := range []int{5, 16} {
		ccltest.Run(t, n, func(t testing.TB, world *ccl.Comm) {
			for _, form := range []int{2, 3, 1002, 1004} {
				c := formed(t, world, form)
				plan := map[int]string{2: "groups of 2", 3: "groups of 3", 1002: "tree of 2", 1004: "tree of 4"}[form]
				require.Equal(t, plan+" over shared memory", c.Plan(ccl.KindAllReduce, ccl.TypeInt64, ccl.Sum, 2))
				require.Equal(t, plan+" over shared memory", c.Plan(ccl.KindBarrier, ccl.TypeInt64, ccl.Sum, 0))
				require.Equal(t, "staged over shared memory", c.Plan(ccl.KindAllReduce, ccl.TypeInt64, ccl.Sum, 1<<20))
				for i := range 100 {
					x := []int64{int64(i + c.Rank()), 1}
					require.NoError(t, ccl.AllReduce(t.Context(), c, x, x, ccl.Sum))
					require.Equal(t, []int64{int64(n*i + n*(n-1)/2), int64(n)}, x, "form %d, call %d", form, i)
					if i%10 == 0 {
						require.NoError(t, ccl.Barrier(t.Context(), c))
						y := []int64{int64(c.Rank())}
						require.NoError(t, ccl.Broadcast(t.Context(), c, y, i%n))
						require.Equal(t, int64(i%n), y[0])
					}
				}
				require.NoError(t, c.Close())
			}
		}, ccltest.Processes(n))
	}
}

// Whoever is at fault is named by all others, whatever its part in the form: a member, a leader, or the last group's only rank;
// stopped within a call, or in another call. (No round tells which ranks have not come to a call: see plane.LateRanks.)
func TestFormsNameTheRankAtFault(t *testing.T) {
	const n = 7
	ccltest.Run(t, n, func(t testing.TB, world *ccl.Comm) {
		ctx := t.Context()
		for _, form := range []int{3, 1003} {
			for _, victim := range []int{0, 1, 3, 5, 6} {
				for _, what := range []string{"stopped", "other call"} {
					c := formed(t, world, form)
					x := []int64{1}
					require.NoError(t, ccl.AllReduce(ctx, c, x, x, ccl.Sum))
					require.NoError(t, ccl.Barrier(ctx, world))
					limited, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
					if c.Rank() == victim {
						switch what {
						case "stopped":
							require.NoError(t, inject.Plan("cpu.post:1:stop:1500ms"))
						case "other call":
							x = []int64{1, 1}
						}
						limited = ctx
					} else if what == "other call" {
						limited = ctx
					}
					err := ccl.AllReduce(limited, c, x, x, ccl.Sum)
					cancel()
					require.NoError(t, inject.Plan(""))
					where := fmt.Sprintf("form %d, rank %d %s", form, victim, what)
					if c.Rank() == victim && err == nil { // all that it waits for was there when it went on
						require.Equal(t, "stopped", what, where)
						require.NoError(t, c.Close())
						require.NoError(t, ccl.Barrier(ctx, world), where)
						continue
					}
					var e *ccl.Error
					require.True(t, errors.As(err, &e), where)
					if c.Rank() != victim {
						require.Equal(t, victim, e.Peer, "%s: %v", where, err)
					}
					if what == "other call" {
						require.ErrorIs(t, err, ccl.ErrMismatch, where)
					} else {
						require.ErrorIs(t, err, ccl.ErrTimeout, where)
					}
					_ = c.Close() // it has failed
					require.NoError(t, ccl.Barrier(ctx, world), where)
				}
			}
		}
	}, ccltest.Processes(n), ccltest.Deadline(3*time.Minute))
}
