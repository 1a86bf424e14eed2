package disks

import (
	"context"
	"errors"
	"io/fs"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/ckpt/store"
)

// A Wait whose context ends leaves the Save going, whatever it is at on whichever rank, and the Disks good.
func TestWaitAgainAndAgain(t *testing.T) {
	all := hosts(t, 2)
	may := make(chan int)
	all[1] = upon(all[1], "put", indexEnd, func() { // rank 0 has published it, and waits for this disk
		<-may
	})
	on(t, all, nil, func(t testing.TB, c *ccl.Comm, d *Disks) {
		s, err := d.NewSaver(t.Context())
		require.NoError(t, err)
		require.NoError(t, s.Save(t.Context(), ckpt.Step("", 1), 1, tensors(c.Rank(), 2, 100, 1)))
		for range 5 {
			soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			require.ErrorIs(t, s.Wait(soon), context.DeadlineExceeded)
			cancel()
		}
		ccltest.Barrier(t, c)
		if c.Rank() == 0 {
			close(may)
		}
		require.NoError(t, s.Wait(t.Context()))
		require.NoError(t, s.Wait(t.Context()))
		require.Equal(t, 1, loaded(t, c, d, 100))
		require.NoError(t, s.Close(t.Context()))
	})
}

// A Close of a Saver whose context ends also ends the Save, on all ranks, in whatever it is.
func TestCloseInTheMiddle(t *testing.T) {
	for _, end := range []string{parts, indexEnd} {
		all := hosts(t, 2)
		has, may := make(chan int), make(chan int)
		once := sync.OnceFunc(func() { close(has) })
		all[1] = upon(all[1], "put", end, func() {
			once()
			<-may
		})
		on(t, all, nil, func(t testing.TB, c *ccl.Comm, d *Disks) {
			s, err := d.NewSaver(t.Context())
			require.NoError(t, err)
			require.NoError(t, s.Save(t.Context(), ckpt.Step("", 1), 1, tensors(c.Rank(), 2, 100, 1)))
			<-has
			if c.Rank() == 0 {
				ended, cancel := context.WithCancel(t.Context())
				cancel()
				require.ErrorIs(t, s.Close(ended), context.Canceled)
				close(may)
			} else {
				require.Error(t, s.Wait(t.Context()))
				_ = s.Close(t.Context())
			}
			ccltest.Barrier(t, c)
			_, _, err = d.Latest(t.Context(), "") // the Disks are good
			require.True(t, err == nil || errors.Is(err, fs.ErrNotExist), err)
		})
	}
}

// Close may be called again, as that of a Comm.
func TestCloseTwice(t *testing.T) {
	on(t, hosts(t, 2), nil, func(t testing.TB, c *ccl.Comm, d *Disks) {
		require.NoError(t, d.Close())
		require.Error(t, d.Save(t.Context(), "x", nil, nil))
	})
}

// Keep removes no checkpoint that another job has published on a disk of both since Keep looked: it has an error, and has deleted
// nothing.
func TestKeepBesideAnotherJob(t *testing.T) {
	all := hosts(t, 3)
	may, took, ended := make(chan int), make(chan int), make(chan int)
	slow := upon(all[1], "put", indexEnd, func() {
		close(took)
		<-may
	})
	go func() { // of this job rank 0 has the disk that is rank 1's in the other
		defer close(ended)
		saveOn(t, []store.Store{slow, all[2]}, nil, 100, 1)
	}()
	<-took
	let := sync.OnceFunc(func() {
		close(may)
		<-ended
	})
	on(t, []store.Store{upon(all[0], "put", ckpt.Step("", 1)+"/index.json", let), all[1]}, nil, func(t testing.TB, c *ccl.Comm, d *Disks) {
		save(t, c, d, "", 100, 2)
		require.ErrorIs(t, d.Keep(t.Context(), "", 1), fs.ErrExist)
	})
	on(t, all[1:], nil, func(t testing.TB, c *ccl.Comm, d *Disks) {
		ts := blank(c.Rank(), 2, 100)
		_, err := d.Load(t.Context(), ckpt.Step("", 1), nil, ts, ckpt.LoadOptions{})
		require.NoError(t, err)
		alike(t, tensors(c.Rank(), 2, 100, 1), ts)
	})
}

// A rank whose context ends in a Load, while others read its disk and it reads theirs, ends it for all in a bounded time.
func TestLoadIsCanceled(t *testing.T) {
	all := hosts(t, 3)
	saveOn(t, all, nil, 1000, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	now := []store.Store{all[1], all[2], upon(all[0], "read", parts, cancel)}
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		d, err := New(t.Context(), c, now[c.Rank()], nil)
		require.NoError(t, err)
		mine := t.Context()
		if c.Rank() == 1 {
			mine = ctx
		}
		_, err = d.Load(mine, ckpt.Step("", 1), nil, blank(c.Rank(), 3, 1000), ckpt.LoadOptions{})
		require.Error(t, err)
		if c.Rank() == 1 {
			require.ErrorIs(t, err, context.Canceled)
		}
		_ = d.Close()
	})
}

// What all disks have alike is told once, and what differs is found: also an index of one name and size.
func TestCompare(t *testing.T) {
	const index, part = "x/index.json", "x/part-00001-of-00001.0-0-0123456789abcdef.safetensors"
	on(t, hosts(t, 2), nil, func(t testing.TB, c *ccl.Comm, d *Disks) {
		mine := []held{{Name: index, Size: 9, Sum: 7, Good: true}, {Name: part, Size: 5}, {Name: index, Left: true}}
		tell, alike, err := d.compare(t.Context(), mine)
		require.NoError(t, err)
		require.Equal(t, mine[1:], tell)
		require.Equal(t, mine[:1], alike)
		mine[0].Sum += uint32(c.Rank())
		tell, alike, err = d.compare(t.Context(), mine)
		require.NoError(t, err)
		require.Equal(t, mine, tell)
		require.Empty(t, alike)
	})
}
