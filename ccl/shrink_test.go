package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/ccl/ccltest/simnet"
)

// shrinkWorlds are the ways in which 4 ranks are run.
var shrinkWorlds = []struct {
	name string
	opts []ccltest.Option
}{
	{"goroutines", nil},
	{"hosts", []ccltest.Option{ccltest.Hosts(4), inNet}},
	{"mixed", []ccltest.Option{ccltest.RoundRobin(2), inNet}},
	{"processes", []ccltest.Option{ccltest.Processes(4)}},
	{"processes, mixed", []ccltest.Option{ccltest.Processes(4), ccltest.Hosts(2)}},
}

// inNet connects hosts by a network in memory, in virtual time.
var inNet = ccltest.World(1, simnet.Link{Delay: 50 * time.Microsecond, Jitter: 20 * time.Microsecond}, nil)

// members is the ranks of c as each was in the job, gathered over c.
func members(t testing.TB, c *ccl.Comm, old int) []int {
	t.Helper()
	all := make([]int, c.Size())
	require.NoError(t, ccl.AllGather(t.Context(), c, all, []int{old}))
	return all
}

// untilFailed makes calls until one fails: between hosts an Abort takes its time.
func untilFailed(ctx context.Context, c *ccl.Comm) error {
	for {
		if err := ccl.Barrier(ctx, c); err != nil {
			return err
		}
	}
}

// Where no rank was lost the new Comm has all of them.
func TestShrinkWithoutLoss(t *testing.T) {
	for _, w := range shrinkWorlds {
		t.Run(w.name, func(t *testing.T) {
			ccltest.Run(t, 4, func(t testing.TB, world *ccl.Comm) {
				c := world
				for round, fail := range []func(*ccl.Comm){
					func(*ccl.Comm) {}, // nothing at all
					func(c *ccl.Comm) {
						if c.Rank() == 2 {
							c.Abort(errors.New("on purpose"))
						}
						require.ErrorIs(t, untilFailed(t.Context(), c), ccl.ErrAborted)
					},
					func(c *ccl.Comm) {
						ctx, cancel := context.WithCancel(t.Context())
						defer cancel()
						if c.Rank() == 1 {
							cancel()
						}
						require.ErrorIs(t, untilFailed(ctx, c), ccl.ErrCanceled)
					},
				} {
					fail(c)
					next, err := c.Shrink(t.Context())
					require.NoError(t, err, "round %d", round)
					require.Equal(t, []int{0, 1, 2, 3}, members(t, next, c.Rank()))
					ccltest.Barrier(t, world) // all are past the last call on next
					c = next
					defer c.Close()
				}
			}, w.opts...)
		})
	}
}

// Ranks that have closed the Comm are left out, whether it has failed or not.
func TestShrinkWithoutThoseThatLeft(t *testing.T) {
	for _, w := range shrinkWorlds {
		for _, failed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, failed=%t", w.name, failed), func(t *testing.T) {
				ccltest.Run(t, 4, func(t testing.TB, world *ccl.Comm) {
					c := ccltest.Split(t, world, 0, -world.Rank()) // the other way round
					if failed {
						if world.Rank() == 1 {
							c.Abort(errors.New("on purpose"))
						}
						require.ErrorIs(t, untilFailed(t.Context(), c), ccl.ErrAborted)
					}
					defer c.Close()
					if world.Rank() == 3 { // rank 0 of c
						require.NoError(t, c.Close())
					} else {
						next, err := c.Shrink(t.Context())
						require.NoError(t, err)
						require.Equal(t, []int{2, 1, 0}, members(t, next, world.Rank()))
						ccltest.Barrier(t, next)
						require.NoError(t, next.Close())
					}
					ccltest.Barrier(t, world)
				}, w.opts...)
			})
		}
	}
}

// A rank that does not come is named, by all.
func TestShrinkNamesWhoIsMissing(t *testing.T) {
	for _, w := range shrinkWorlds[:3] {
		opts := w.opts
		if w.name == "hosts" {
			opts = []ccltest.Option{ccltest.Hosts(3), inNet}
		}
		for _, late := range []int{0, 2} {
			t.Run(fmt.Sprintf("%s, rank %d", w.name, late), func(t *testing.T) {
				ccltest.Run(t, 3, func(t testing.TB, world *ccl.Comm) {
					c := ccltest.Split(t, world, 0, 0)
					if world.Rank() != late {
						ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
						defer cancel()
						began := time.Now()
						_, err := c.Shrink(ctx)
						if w.name != "goroutines" { // where nothing else takes time
							require.LessOrEqual(t, time.Since(began), 200*time.Millisecond)
						}
						var e *ccl.Error
						require.ErrorAs(t, err, &e)
						require.Equal(t, ccl.ErrTimeout, e.Code, "%v", err)
						require.Equal(t, "Shrink", e.Op)
						require.Equal(t, []int{late}, e.Missing, "%v", err)
					}
					ccltest.Barrier(t, world)
				}, opts...)
			})
		}
	}
}

func TestShrinkClosed(t *testing.T) {
	ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
		one, err := c.Shrink(t.Context())
		require.NoError(t, err)
		require.Equal(t, 1, one.Size())
		require.NoError(t, one.Close())
		_, err = one.Shrink(t.Context())
		require.EqualError(t, err, "ccl: rank 0: Shrink: the Comm is closed")
	})
}

func init() { roles["shrink"] = shrinks }

// shrinks: the ranks of the list are killed one after the other, some in Shrink itself.
func shrinks(ctx context.Context, t *testing.T, list string) {
	world := joined(ctx, t, nil)
	c, left := world, world.Size()
	defer func() { c.Close() }() // who only ends is lost to those that are still in the last call
	for one := range strings.SplitSeq(list, ",") {
		how, number := one[0], one[1:]
		victim, err := strconv.Atoi(number)
		require.NoError(t, err)
		if world.Rank() == victim {
			if how == 'k' {
				killSelf()
			}
			time.AfterFunc(time.Duration(victim)*300*time.Microsecond, killSelf) // in Shrink
		}
		for left--; c.Size() > left; {
			require.ErrorIs(t, callOn(ctx, c), ccl.ErrRankLost)
			next, err := c.Shrink(ctx)
			require.NoError(t, err)
			if c != world {
				c.Close()
			}
			c = next
		}
	}
	all := make([]int, c.Size())
	require.NoError(t, ccl.AllGather(ctx, c, all, []int{world.Rank()}))
	fmt.Printf("rank %d: in the end: %v\n", world.Rank(), all)
}

func TestShrinkAfterKills(t *testing.T) {
	for _, list := range []string{"k2", "k0", "k0,k1", "k1,k3", "k3,k0,k2", "d0", "d2,d0"} {
		for _, hosts := range []int{0, 2, 5} {
			t.Run(fmt.Sprintf("%s on %d hosts", list, hosts), func(t *testing.T) {
				out := processes(t, 5, hosts, "shrink", list)
				left := []int{0, 1, 2, 3, 4}
				for one := range strings.SplitSeq(list, ",") {
					victim, _ := strconv.Atoi(one[1:])
					left = slices.DeleteFunc(left, func(r int) bool { return r == victim })
				}
				for _, r := range left {
					require.Contains(t, out, fmt.Sprintf("rank %d: in the end: %v\n", r, left))
				}
			})
		}
	}
}
