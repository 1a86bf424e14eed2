package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// growing is a job of goroutines whose ranks, and those that come late, find each other in a hall.
type growing struct {
	t    *testing.T
	ctx  context.Context
	hall *boot.Hall
	all  sync.WaitGroup
}

func newGrowing(t *testing.T) *growing {
	hall, err := boot.ListenHall("127.0.0.1:0", nil)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), long)
	j := &growing{t: t, ctx: ctx, hall: hall}
	t.Cleanup(func() { j.all.Wait(); cancel(); hall.Close() })
	return j
}

// options are o with the store, and quiet.
func (j *growing) options(o ccl.Options) *ccl.Options {
	o.Store, o.Log = j.hall, slog.New(slog.NewTextHandler(io.Discard, nil))
	return &o
}

// start starts n ranks and spares, which do f.
func (j *growing) start(n, spares int, hosts []string, f func(c *ccl.Comm)) {
	j.startWith(n+spares, hosts, func(int) *ccl.Options { return j.options(ccl.Options{Spares: spares}) }, func(_ int, c *ccl.Comm) { f(c) })
}

// startWith starts n ranks and spares with options of their own, which do f.
func (j *growing) startWith(n int, hosts []string, options func(r int) *ccl.Options, f func(r int, c *ccl.Comm)) {
	for r, b := range boot.Local(n, hosts...) {
		j.all.Go(func() {
			defer b.Close()
			c, err := ccl.NewComm(j.ctx, b, options(r))
			if errors.Is(err, ccl.ErrUnused) {
				return
			}
			if assert.NoError(j.t, err) {
				f(r, c)
			}
		})
	}
}

// come starts a process that comes late, which does f.
func (j *growing) come(o ccl.Options, f func(c *ccl.Comm, err error)) {
	j.all.Go(func() {
		c, err := ccl.Join(j.ctx, j.options(o))
		f(c, err)
	})
}

// waits is how many are announced in the hall. The tests know the keys that package lobby describes.
func (j *growing) waits(n int) {
	until(j.t, fmt.Sprintf("%d do not wait", n), func() bool {
		g, err := j.hall.Add(j.ctx, "goccl/generation", 0)
		require.NoError(j.t, err)
		came, err := j.hall.Add(j.ctx, fmt.Sprintf("goccl/came/%d", g+1), 0)
		require.NoError(j.t, err)
		return came >= int64(n)
	})
}

// grow is Grow to size ranks, of which all that it takes are announced; where one does not answer within the lead's second, as on a
// machine that stands still, all ranks find c unchanged and come again. c is closed.
func (j *growing) grow(c *ccl.Comm, size int) *ccl.Comm {
	for j.ctx.Err() == nil {
		next, err := ccl.Grow(j.ctx, c, size)
		if !assert.NoError(j.t, err) {
			break
		}
		if next == c {
			continue
		}
		assert.Equal(j.t, size, next.Size())
		assert.Equal(j.t, c.Rank(), next.Rank(), "a rank keeps its number")
		c.Close()
		return next
	}
	return c
}

// staffed has c grow until so many spares wait there: the job may be whole before one of them answers. c is closed where it grows.
func (j *growing) staffed(c *ccl.Comm, waiting int) *ccl.Comm {
	for c.Waiting() < waiting && j.ctx.Err() == nil {
		next, err := ccl.Grow(j.ctx, c, c.Size())
		if !assert.NoError(j.t, err) {
			break
		}
		if next != c {
			c.Close()
			c = next
		}
	}
	return c
}

// Two ranks become four; the newcomers are fresh until they are restored. Then nobody waits, and the Comm stays as it is.
func TestGrow(t *testing.T) {
	for _, hosts := range [][]string{nil, {"a", "b"}} {
		t.Run(fmt.Sprint(hosts), func(t *testing.T) {
			j := newGrowing(t)
			check := func(c *ccl.Comm) {
				defer c.Close()
				assert.Equal(t, 4, c.Size())
				assert.Equal(t, []int{2, 3}, c.Fresh())
				works(j.ctx, t, c)
				c.Restored()
				same, err := ccl.Grow(j.ctx, c, 4)
				assert.NoError(t, err)
				assert.Same(t, c, same)
				same, err = ccl.Grow(j.ctx, c, 5)
				assert.NoError(t, err)
				assert.Same(t, c, same, "nobody waits")
				works(j.ctx, t, c)
			}
			j.start(2, 0, hosts, func(c *ccl.Comm) {
				works(j.ctx, t, c)
				same, err := ccl.Grow(j.ctx, c, 3)
				assert.NoError(t, err)
				assert.Same(t, c, same)
				if assert.NoError(t, ccl.Barrier(j.ctx, c)); c.Rank() == 0 {
					for range 2 {
						j.come(ccl.Options{}, func(c *ccl.Comm, err error) {
							if assert.NoError(t, err) {
								check(c)
							}
						})
					}
					j.waits(2)
				}
				assert.NoError(t, ccl.Barrier(j.ctx, c))
				check(j.grow(c, 4))
			})
		})
	}
}

// The spare of a job is taken along, and comes before newcomers: it works, or waits in the new job, and can be needed there.
func TestGrowWithSpares(t *testing.T) {
	for _, tc := range []struct {
		name          string
		came, size    int
		fresh         []int
		waiting, late int // in the new job
	}{
		{"the spare works", 0, 3, []int{2}, 0, 0},
		{"the spare and a newcomer work", 1, 4, []int{2, 3}, 0, 0},
		{"the spare works, a newcomer is the spare", 1, 3, []int{2}, 1, 0},
		{"a newcomer is too many", 2, 3, []int{2}, 1, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			j := newGrowing(t)
			do := func(c *ccl.Comm) {
				c = j.staffed(c, tc.waiting)
				defer c.Close()
				assert.Equal(t, tc.size, c.Size())
				assert.Equal(t, tc.fresh, c.Fresh())
				assert.Equal(t, tc.waiting, c.Waiting())
				works(j.ctx, t, c)
				if c.Rank() == 0 && tc.late > 0 {
					assert.NoError(t, j.hall.Set(j.ctx, "goccl/over", nil))
				}
				assert.NoError(t, ccl.Barrier(j.ctx, c))
			}
			unused := make(chan error, 4)
			j.start(2, 1, nil, func(c *ccl.Comm) {
				if len(c.Fresh()) > 0 { // the spare, in the new job
					do(c)
					return
				}
				if c.Rank() == 0 {
					for range tc.came {
						j.come(ccl.Options{Spares: 1}, func(c *ccl.Comm, err error) {
							if errors.Is(err, ccl.ErrUnused) {
								unused <- err
							} else if assert.NoError(t, err) {
								do(c)
							}
						})
					}
					j.waits(tc.came)
				}
				assert.NoError(t, ccl.Barrier(j.ctx, c))
				do(j.grow(c, tc.size))
			})
			j.all.Wait()
			assert.Len(t, unused, tc.waiting+tc.late)
		})
	}
}

// A spare that is taken along and waits in the new job has left the old one, which may be long before anybody needs it.
func TestGrowSpareLeaves(t *testing.T) {
	j := newGrowing(t)
	j.start(2, 2, nil, func(c *ccl.Comm) {
		defer c.Close()
		if c.Size() == 2 {
			next := c
			for next == c && j.ctx.Err() == nil { // until both spares answer
				var err error
				next, err = ccl.Grow(j.ctx, c, 3)
				assert.NoError(t, err)
			}
			until(t, "the spares are in the old job", func() bool { return c.Waiting() == 0 })
			c.Close()
			c = next
			defer c.Close()
		}
		assert.Equal(t, 3, c.Size())
		assert.Equal(t, 1, c.Waiting())
		works(j.ctx, t, c)
	})
}

// A spare is used, and a newcomer takes its place as one; then that is used.
func TestGrowRefills(t *testing.T) {
	j := newGrowing(t)
	end := func(c *ccl.Comm) {
		assert.Equal(t, []int{1}, c.Fresh())
		works(j.ctx, t, c)
		c.Close()
	}
	second := func(c *ccl.Comm) { // rank 1 leaves, and the newcomer is in its place
		if c.Rank() == 1 {
			c.Close()
			return
		}
		assert.Error(t, untilFailed(j.ctx, c))
		next, err := c.Replace(j.ctx)
		if assert.NoError(t, err) {
			c.Close()
			end(next)
		}
	}
	first := func(c *ccl.Comm) {
		assert.Equal(t, []int{1}, c.Fresh())
		assert.Zero(t, c.Waiting())
		works(j.ctx, t, c)
		c.Restored()
		if c.Rank() == 0 {
			j.come(ccl.Options{Spares: 1}, func(c *ccl.Comm, err error) {
				if assert.NoError(t, err) {
					end(c)
				}
			})
			j.waits(1)
		}
		assert.NoError(t, ccl.Barrier(j.ctx, c))
		next := j.grow(c, 3)
		assert.Empty(t, next.Fresh())
		assert.Equal(t, 1, next.Waiting())
		second(next)
	}
	j.start(3, 1, nil, func(c *ccl.Comm) {
		switch {
		case len(c.Fresh()) > 0:
			first(c)
		case c.Rank() == 1:
			works(j.ctx, t, c)
			c.Close()
		default:
			works(j.ctx, t, c)
			assert.Error(t, untilFailed(j.ctx, c))
			next, err := c.Replace(j.ctx)
			if assert.NoError(t, err) {
				c.Close()
				first(next)
			}
		}
	})
}

// After a loss without spares those that are left grow to the old size.
func TestGrowAfterShrink(t *testing.T) {
	j := newGrowing(t)
	whole := func(c *ccl.Comm) {
		assert.Equal(t, []int{2}, c.Fresh())
		works(j.ctx, t, c)
		c.Close()
	}
	j.start(3, 0, nil, func(c *ccl.Comm) {
		works(j.ctx, t, c)
		if c.Rank() == 1 {
			c.Close()
			return
		}
		assert.Error(t, untilFailed(j.ctx, c))
		next, err := c.Shrink(j.ctx)
		if !assert.NoError(t, err) {
			return
		}
		c.Close()
		if next.Rank() == 0 {
			j.come(ccl.Options{}, func(c *ccl.Comm, err error) {
				if assert.NoError(t, err) {
					whole(c)
				}
			})
			j.waits(1)
		}
		assert.NoError(t, ccl.Barrier(j.ctx, next))
		whole(j.grow(next, 3))
	})
}

// What cannot be is the same error on all ranks, and the Comm is good.
func TestGrowRefused(t *testing.T) {
	j := newGrowing(t)
	j.start(2, 0, nil, func(c *ccl.Comm) {
		defer c.Close()
		_, err := ccl.Grow(j.ctx, c, 1)
		wants(t, err, ccl.ErrArgument)
		assert.ErrorContains(t, err, "Grow takes none away")
		_, err = ccl.Grow(j.ctx, c, 3+c.Rank())
		wants(t, err, ccl.ErrArgument)
		assert.ErrorContains(t, err, "rank 1 wants 4 ranks, and rank 0 3")
		for i, part := range []func() (*ccl.Comm, error){ // in one order on all ranks
			func() (*ccl.Comm, error) { return c.Split(j.ctx, 0, 0) },
			func() (*ccl.Comm, error) { return ccl.Subset(j.ctx, c, []int{0, 1}, 1) },
		} {
			name := []string{"split", "subset"}[i]
			half, err := part()
			if assert.NoError(t, err, name) {
				_, err = ccl.Grow(j.ctx, half, 3)
				wants(t, err, ccl.ErrUnsupported)
				assert.ErrorContains(t, err, "this Comm is a part of the job", name)
				half.Close()
			}
		}
		works(j.ctx, t, c)
	})
	for without, stores := range [][2]boot.Store{{nil, nil}, {j.hall, nil}, {nil, j.hall}} {
		j.startWith(2, nil, func(r int) *ccl.Options {
			o := j.options(ccl.Options{})
			o.Store = stores[r]
			return o
		}, func(r int, c *ccl.Comm) {
			defer c.Close()
			_, err := ccl.Grow(j.ctx, c, 3)
			wants(t, err, ccl.ErrUnsupported)
			assert.ErrorContains(t, err, fmt.Sprintf("rank %d: Grow", r))
			assert.ErrorContains(t, err, fmt.Sprintf("rank %d has no store in which others could wait: set GOCCL_HALL", without%2))
			works(j.ctx, t, c)
		})
	}
	_, err := ccl.Grow(j.ctx, nil, 1)
	wants(t, err, ccl.ErrArgument)
}

// A newcomer with other options, or one that has gone, holds the others up for a moment at most: they go on as they were.
func TestGrowWithBadNewcomers(t *testing.T) {
	j := newGrowing(t)
	j.start(2, 0, nil, func(c *ccl.Comm) {
		defer c.Close()
		if c.Rank() == 0 {
			j.come(ccl.Options{Check: ccl.CheckStrict}, func(_ *ccl.Comm, err error) {
				wants(t, err, ccl.ErrVersion)
				assert.ErrorContains(t, err, "Check=")
			})
			j.waits(1)
		}
		assert.NoError(t, ccl.Barrier(j.ctx, c))
		same, err := ccl.Grow(j.ctx, c, 3)
		assert.NoError(t, err)
		assert.Same(t, c, same)
		if c.Rank() == 0 {
			ctx, cancel := context.WithCancel(j.ctx)
			gone := make(chan struct{})
			go func() {
				defer close(gone)
				_, err := ccl.Join(ctx, j.options(ccl.Options{}))
				wants(t, err, ccl.ErrCanceled)
			}()
			j.waits(1)
			cancel()
			<-gone
		}
		assert.NoError(t, ccl.Barrier(j.ctx, c))
		same, err = ccl.Grow(j.ctx, c, 3)
		assert.NoError(t, err)
		assert.Same(t, c, same)
		works(j.ctx, t, c)
	})
}

// A rank that came in an earlier Grow and is not Restored is fresh for all, those that come now included.
func TestGrowFreshOfBefore(t *testing.T) {
	j := newGrowing(t)
	var step func(c *ccl.Comm)
	step = func(c *ccl.Comm) {
		if c.Size() == 4 {
			assert.Equal(t, []int{2, 3}, c.Fresh(), "rank %d", c.Rank())
			works(j.ctx, t, c)
			c.Close()
			return
		}
		if c.Rank() == 0 {
			j.come(ccl.Options{}, func(c *ccl.Comm, err error) {
				if assert.NoError(t, err) {
					step(c)
				}
			})
			j.waits(1)
		}
		assert.NoError(t, ccl.Barrier(j.ctx, c))
		step(j.grow(c, c.Size()+1))
	}
	j.start(2, 0, nil, step)
}
