package disks

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/ckpt"
	"github.com/goccl/goccl/train/ckpt/store"
)

// ailing is a Store that asks fault before each thing that it does.
type ailing struct {
	store.Dir
	fault func(op, name string) error
}

// upon is a disk that calls f before, or after, it does op to a file whose name ends so.
func upon(s store.Store, op, end string, f func()) store.Store {
	return &ailing{s.(store.Dir), func(now, name string) error {
		if now == op && strings.HasSuffix(name, end) {
			f()
		}
		return nil
	}}
}

func (a *ailing) Put(ctx context.Context, name string, size int64, fresh bool, write func(io.Writer) error) error {
	if err := a.fault("put", name); err != nil {
		return err
	}
	err := a.Dir.Put(ctx, name, size, fresh, func(w io.Writer) error {
		if err := write(&halves{w, func() error { return a.fault("write", name) }}); err != nil {
			return err
		}
		return a.fault("sync", name)
	})
	return cmp.Or(err, a.fault("have put", name))
}

// halves asks in the middle of each write.
type halves struct {
	io.Writer
	ask func() error
}

func (h *halves) Write(b []byte) (int, error) {
	n, err := h.Writer.Write(b[:len(b)/2])
	if err == nil {
		err = h.ask()
	}
	if err != nil {
		return n, err
	}
	m, err := h.Writer.Write(b[n:])
	return n + m, err
}

func (a *ailing) Open(ctx context.Context, name string) (store.Object, error) {
	if err := a.fault("open", name); err != nil {
		return nil, err
	}
	o, err := a.Dir.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	return &ailingObject{o, a, name}, nil
}

type ailingObject struct {
	store.Object
	a    *ailing
	name string
}

func (o *ailingObject) ReadAt(b []byte, at int64) (int, error) {
	if err := o.a.fault("read", o.name); err != nil {
		return 0, err
	}
	return o.Object.ReadAt(b, at)
}

func (a *ailing) List(ctx context.Context, prefix string) ([]store.Entry, error) {
	if err := a.fault("list", prefix); err != nil {
		return nil, err
	}
	return a.Dir.List(ctx, prefix)
}

func (a *ailing) Delete(ctx context.Context, name string) error {
	if err := a.fault("delete", name); err != nil {
		return err
	}
	return a.Dir.Delete(ctx, name)
}

// stride is how far apart the places are at which a test lets something fail: in -short, so far.
func stride(short int) int {
	if testing.Short() {
		return short
	}
	return 1
}

// A disk that fails in the middle: all ranks get one error, which names disk and file; the others go on to the end of the call, and
// the Comm stays good. Before and after, Latest is a whole checkpoint.
func TestDiskFails(t *testing.T) {
	for bad := range 2 {
		all := hosts(t, 2)
		saveOn(t, all, nil, wide, 1)
		moved := []store.Store{all[1], all[0]} // so that each needs the other's disk
		failures := 0
		for at := 1; ; at += stride(3) {
			n, hit := 0, false
			var mu sync.Mutex
			fault := func(op, name string) error {
				mu.Lock()
				defer mu.Unlock()
				if n++; n != at {
					return nil
				}
				hit = true
				return &fs.PathError{Op: op, Path: name, Err: syscall.EIO}
			}
			now := slices.Clone(moved)
			now[bad] = &ailing{moved[bad].(store.Dir), fault}
			texts := make([]string, 2)
			on(t, now, nil, func(t testing.TB, c *ccl.Comm, d *Disks) {
				state, ts := 0, blank(c.Rank(), 2, wide)
				_, err := d.Load(t.Context(), ckpt.Step("", 1), &state, ts, ckpt.LoadOptions{})
				if err == nil {
					alike(t, tensors(c.Rank(), 2, wide, 1), ts)
				} else {
					texts[c.Rank()] = err.Error()
					require.ErrorContains(t, err, fmt.Sprintf("the disk of rank %d: ", bad))
					require.ErrorContains(t, err, "input/output error")
					require.ErrorContains(t, err, "step-00000001")
				}
				ccltest.Barrier(t, c)
				ccltest.Barrier(t, d.c)
			})
			require.Equal(t, texts[0], texts[1])
			if texts[0] != "" {
				failures++
			}
			if !hit {
				require.Greater(t, failures, 5/stride(3), "the list, an open and two reads of the index and the part")
				break
			}
		}
	}
}

// The same for a Save: nothing is lost, and the step can be saved again.
func TestDiskFailsInSave(t *testing.T) {
	for bad := range 2 {
		for at := 1; ; at += stride(5) {
			all := hosts(t, 2)
			saveOn(t, all, nil, 100, 1)
			n, hit, early := 0, false, false
			var mu sync.Mutex
			now := slices.Clone(all)
			now[bad] = &ailing{all[bad].(store.Dir), func(op, name string) error {
				mu.Lock()
				defer mu.Unlock()
				if n++; n != at {
					return nil
				}
				hit, early = true, strings.HasSuffix(name, parts) && op != "have put"
				return &fs.PathError{Op: op, Path: name, Err: syscall.EIO}
			}}
			texts := make([]string, 2)
			on(t, now, nil, func(t testing.TB, c *ccl.Comm, d *Disks) {
				if err := d.Save(t.Context(), ckpt.Step("", 2), 2, tensors(c.Rank(), 2, 100, 2)); err != nil {
					texts[c.Rank()] = err.Error()
					require.ErrorContains(t, err, "input/output error")
					require.ErrorContains(t, err, fmt.Sprintf("the disk of rank %d: ", bad))
				}
				ccltest.Barrier(t, c)
			})
			require.Equal(t, texts[0], texts[1])
			if early && texts[0] != "" {
				require.Len(t, append(files(t, all[0], parts), files(t, all[1], parts)...), 2, "the other parts went at once")
			}
			on(t, all, nil, func(t testing.TB, c *ccl.Comm, d *Disks) {
				state := loaded(t, c, d, 100)
				if texts[0] == "" {
					require.Equal(t, 2, state)
				}
				if state == 1 {
					save(t, c, d, "", 100, 2)
				}
				save(t, c, d, "", 100, 3)
				require.NoError(t, d.Keep(t.Context(), "", 1))
			})
			for _, s := range all {
				require.Len(t, files(t, s, parts), 1, "request %d of rank %d", at, bad)
			}
			if !hit {
				require.Greater(t, at, 8)
				break
			}
		}
	}
}
