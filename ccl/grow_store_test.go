package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// refusing is a store that carries out or drops what matches, and says in both cases that it has failed.
type refusing struct {
	boot.Store
	refuses func(what, key string, n int64) (fails, carriedOut bool)
}

var errStoreBroke = errors.New("the store broke off")

func (s refusing) Add(ctx context.Context, key string, n int64) (int64, error) {
	fails, carriedOut := s.refuses("add", key, n)
	if carriedOut || !fails {
		sum, err := s.Store.Add(ctx, key, n)
		if !fails {
			return sum, err
		}
	}
	return 0, errStoreBroke
}

func (s refusing) Get(ctx context.Context, key string) ([]byte, error) {
	if fails, _ := s.refuses("get", key, 0); fails {
		return nil, errStoreBroke
	}
	return s.Store.Get(ctx, key)
}

// refusedOn are options o of rank r, whose store refuses on rank on.
func (j *growing) refusedOn(on, r int, o ccl.Options, refuses func(what, key string, n int64) (refuse, carriedOut bool)) *ccl.Options {
	own := j.options(o)
	if r == on {
		own.Store = refusing{j.hall, refuses}
	}
	return own
}

// The lead does not hear from the store whether the job has grown, whether its word has come through or not. It gets the store's error and
// fails its Comm, so that no rank waits for it, and all others come to the same: the failure of that.
func TestGrowUndecided(t *testing.T) {
	for _, carriedOut := range []bool{false, true} {
		t.Run(fmt.Sprint("carried out ", carriedOut), func(t *testing.T) {
			j := newGrowing(t)
			lost := func(what, key string, n int64) (bool, bool) {
				return what == "add" && strings.HasPrefix(key, "goccl/decide/"), carriedOut && n == 1
			}
			j.startWith(3, nil, func(r int) *ccl.Options { return j.refusedOn(0, r, ccl.Options{}, lost) }, func(r int, c *ccl.Comm) {
				defer c.Close()
				if r == 0 {
					j.come(ccl.Options{}, func(c *ccl.Comm, err error) {
						if !carriedOut { // it waits for another
							wants(t, err, ccl.ErrUnused)
						} else if assert.NoError(t, err) {
							assert.Error(t, ccl.Barrier(j.ctx, c), "the lead has left it")
							c.Close()
						}
					})
					j.waits(1)
				}
				assert.NoError(t, ccl.Barrier(j.ctx, c))
				next, err := c, error(nil)
				for next == c && err == nil { // until the newcomer answers in time
					next, err = ccl.Grow(j.ctx, c, 4)
				}
				switch {
				case r == 0:
					wants(t, err, ccl.ErrBackend)
					assert.NoError(t, j.hall.Set(j.ctx, "goccl/over", nil))
				case carriedOut: // they have heard that it counts
					if assert.NoError(t, err) {
						assert.Error(t, ccl.Barrier(j.ctx, next), "the lead has left it")
						next.Close()
					}
					return
				default:
					wants(t, err, ccl.ErrAborted)
				}
				assert.ErrorContains(t, err, errStoreBroke.Error())
				assert.Error(t, c.Err())
			})
			j.all.Wait()
			assert.NoError(t, j.ctx.Err(), "nobody waits for the end of its context")
		})
	}
}

// A spare whose store fails for a moment is taken along all the same.
func TestGrowSpareAsksAgain(t *testing.T) {
	j := newGrowing(t)
	var failed atomic.Bool
	once := func(what, key string, _ int64) (bool, bool) {
		return what == "get" && strings.HasPrefix(key, "goccl/call/") && failed.CompareAndSwap(false, true), false
	}
	j.startWith(3, nil, func(r int) *ccl.Options { return j.refusedOn(2, r, ccl.Options{Spares: 1}, once) }, func(r int, c *ccl.Comm) {
		if r < 2 {
			until(t, "the spare asks", failed.Load)
			assert.NoError(t, ccl.Barrier(j.ctx, c))
			c = j.grow(c, 3)
		}
		defer c.Close()
		assert.Equal(t, 3, c.Size())
		works(j.ctx, t, c)
	})
	j.all.Wait()
	assert.NoError(t, j.ctx.Err())
}

// A job whose hall is gone says so on all ranks, and goes on.
func TestGrowWithoutHall(t *testing.T) {
	j := newGrowing(t)
	store, err := boot.DialHall(j.hall.Addr(), nil)
	require.NoError(t, err)
	j.startWith(2, nil, func(int) *ccl.Options {
		o := j.options(ccl.Options{})
		o.Store = store
		return o
	}, func(_ int, c *ccl.Comm) {
		defer c.Close()
		if c.Rank() == 0 {
			assert.NoError(t, j.hall.Close())
		}
		assert.NoError(t, ccl.Barrier(j.ctx, c))
		_, err := ccl.Grow(j.ctx, c, 3)
		wants(t, err, ccl.ErrBackend)
		assert.ErrorContains(t, err, "the hall at "+j.hall.Addr())
		works(j.ctx, t, c)
	})
}

// The pool has failed, so Grow renews it, and then comes to nothing: all ranks get the Comm that has the new pool, which is good, and
// can grow.
func TestGrowRenewedInVain(t *testing.T) {
	j := newGrowing(t)
	var armed atomic.Bool
	var looks atomic.Int32
	second := func(what, key string, _ int64) (bool, bool) { // the lead looks which guests wait, renews the pool, and looks again
		return what == "add" && key == "goccl/generation" && armed.Load() && looks.Add(1) == 2, false
	}
	whole := func(c *ccl.Comm) {
		c = j.staffed(c, 1)
		assert.Equal(t, []int{3, 1}, []int{c.Size(), c.Waiting()})
		works(j.ctx, t, c)
		c.Close()
	}
	var said [3]logs
	j.startWith(3, nil, func(r int) *ccl.Options {
		o := j.refusedOn(0, r, ccl.Options{Spares: 1}, second)
		o.Log = slog.New(slog.NewTextHandler(&said[r], nil))
		return o
	}, func(r int, c *ccl.Comm) {
		if r == 2 { // the spare, in the new job
			whole(c)
			return
		}
		if r == 0 {
			j.come(ccl.Options{Spares: 1}, func(c *ccl.Comm, err error) {
				if !errors.Is(err, ccl.ErrUnused) && assert.NoError(t, err) {
					whole(c)
				}
			})
			j.waits(1)
			ccl.FailPool(c, errors.New("planted"))
			armed.Store(true)
		}
		assert.NoError(t, ccl.Barrier(j.ctx, c))
		next, err := ccl.Grow(j.ctx, c, 3)
		if !assert.NoError(t, err) {
			return
		}
		assert.NotSame(t, c, next)
		assert.Equal(t, []int{2, r, 1}, []int{next.Size(), next.Rank(), next.Waiting()})
		assert.Contains(t, said[r].String(), "ccl: Grow came to nothing")
		assert.Contains(t, said[r].String(), errStoreBroke.Error())
		c.Close()
		works(j.ctx, t, next)
		whole(j.grow(next, 3))
	})
	j.all.Wait()
	assert.NoError(t, j.ctx.Err())
}

// A newcomer that waits at a hall that goes dark waits until it is back, and is taken in then: the hall has its state again.
func TestGrowHallComesBack(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hall")
	hall, err := boot.ListenHallFile("127.0.0.1:0", nil, file)
	require.NoError(t, err)
	addr := hall.Addr()
	j := newGrowing(t)
	dialed := func() *ccl.Options {
		o := j.options(ccl.Options{})
		o.Store, err = boot.DialHall(addr, nil)
		require.NoError(t, err)
		return o
	}
	options := []*ccl.Options{dialed(), dialed(), dialed()}
	j.startWith(2, nil, func(r int) *ccl.Options { return options[r] }, func(_ int, c *ccl.Comm) {
		if c.Rank() == 0 {
			j.all.Go(func() {
				c, err := ccl.Join(j.ctx, options[2])
				if assert.NoError(t, err) {
					works(j.ctx, t, c)
					c.Close()
				}
			})
			until(t, "it waits", func() bool { n, err := hall.Add(j.ctx, "goccl/came/1", 0); return err == nil && n > 0 })
			assert.NoError(t, hall.Close())
		}
		assert.NoError(t, ccl.Barrier(j.ctx, c))
		same, err := ccl.GrowAll(j.ctx, c, 3)
		wants(t, err, ccl.ErrBackend)
		assert.Nil(t, same)
		if assert.NoError(t, ccl.Barrier(j.ctx, c)); c.Rank() == 0 {
			again, err := boot.ListenHallFile(addr, nil, file)
			if assert.NoError(t, err) {
				t.Cleanup(func() { again.Close() })
			}
		}
		assert.NoError(t, ccl.Barrier(j.ctx, c))
		c = j.growAll(c, 3)
		works(j.ctx, t, c)
		c.Close()
	})
}
