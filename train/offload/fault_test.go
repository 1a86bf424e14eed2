package offload

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/internal/same"
)

// Faulty is a file that fails from the operation on that Fail says, counted from 1 over reads and writes.
type Faulty struct {
	file
	Fail  func(n int, write bool) error
	Short bool  // of a write that fails, the first half is there
	Room  error // of the next Reserve
	mu    sync.Mutex
	n     int
}

func (f *Faulty) ask(write bool) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.n++
	return f.Fail(f.n, write)
}

func (f *Faulty) Reserve(n int64) error {
	if err := f.Room; err != nil {
		f.Room = nil
		return err
	}
	return f.file.Reserve(n)
}

func (f *Faulty) ReadAt(b []byte, off int64) (int, error) {
	if err := f.ask(false); err != nil {
		return 0, err
	}
	return f.file.ReadAt(b, off)
}

func (f *Faulty) WriteAt(b []byte, off int64) (int, error) {
	if err := f.ask(true); err != nil {
		if f.Short {
			n, _ := f.file.WriteAt(b[:len(b)/2&^(block-1)], off)
			return n, err
		}
		return 0, err
	}
	return f.file.WriteAt(b, off)
}

// Opening has New give the file of one rank to wrap, until the test ends.
func Opening(t testing.TB, rank int, wrap func(*Faulty)) {
	before := open
	t.Cleanup(func() { open = before })
	open = func(dir string, r int, direct bool) (file, error) {
		f, err := before(dir, r, direct)
		if err != nil || r != rank {
			return f, err
		}
		faulty := &Faulty{file: f}
		wrap(faulty)
		return faulty, nil
	}
}

// Buckets is how many bytes of buckets are in memory.
func Buckets(d *Disk) (bytes int) {
	for r, b := range d.rooms {
		bytes += b.Len() * r.t.Size()
	}
	return bytes
}

// Impatient has a close give a disk up after so long, until the test ends.
func Impatient(t testing.TB, d time.Duration) {
	before := same.Tick
	t.Cleanup(func() { same.Tick = before })
	same.Tick = d / 30
}

// memoryFile is a file in memory, which refuses what a direct one would.
type memoryFile struct {
	mu     sync.Mutex
	b      []byte
	direct bool
}

func (m *memoryFile) Name() string          { return "memory" }
func (m *memoryFile) Reserve(n int64) error { m.b = make([]byte, n); return nil }
func (m *memoryFile) Direct() bool          { return m.direct }
func (m *memoryFile) Drop(_, _ int64) error { return nil }
func (m *memoryFile) Close() error          { return nil }
func (m *memoryFile) fits(b []byte, off int64) error {
	if m.direct && (off%block != 0 || len(b)%block != 0 || uintptr(unsafe.Pointer(&b[0]))%block != 0) {
		return syscall.EINVAL
	}
	return nil
}

func (m *memoryFile) ReadAt(b []byte, off int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return copy(b, m.b[off:]), m.fits(b, off)
}

func (m *memoryFile) WriteAt(b []byte, off int64) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return copy(m.b[off:], b), m.fits(b, off)
}

// Reads and writes of any part, from memory that begins anywhere, are those of memory: past the page
// cache in whole blocks alone, and what is beside them stays.
func TestAnyPart(t *testing.T) {
	const n = 3*span/4 + 1001 // float32: several spans, and a tail
	for _, direct := range []bool{true, false} {
		d := &Disk{}
		d.f = &memoryFile{direct: direct}
		first, c, behind := d.Lay(ccl.TypeFloat32, 5), d.Lay(ccl.TypeFloat32, n), d.Lay(ccl.TypeFloat32, 7)
		require.NoError(t, d.Reserve())
		require.Equal(t, int64(block+blocks(4*n)+block), d.Stats().Size)
		d.start()
		want, ones := make([]float32, n), []float32{1, 1, 1, 1, 1, 1, 1}
		first.Write(ccl.BufOf(ones[:5]))
		behind.Write(ccl.BufOf(ones))
		r := rand.New(rand.NewPCG(1, 2))
		for k := range 300 {
			lo := r.IntN(n)
			hi := lo + 1 + r.IntN(n-lo)
			if k%3 > 0 {
				hi = min(hi, lo+1+r.IntN(3000))
			}
			if k%7 == 0 {
				hi = n
			}
			b := make([]float32, hi-lo+1)[k%2:][:hi-lo]
			if k%2 == 0 {
				for i := range b {
					b[i] = float32(r.Uint32())
				}
				copy(want[lo:], b)
				require.NoError(t, d.Wait(t.Context(), c.Part(lo, hi).Write(ccl.BufOf(b))))
			} else {
				require.NoError(t, d.Wait(t.Context(), c.Part(lo, hi).Read(ccl.BufOf(b))))
				require.True(t, slicesEqual(want[lo:hi], b), "%d: %d to %d", k, lo, hi)
			}
		}
		got := make([]float32, 7)
		require.NoError(t, d.Wait(t.Context(), behind.Read(ccl.BufOf(got))))
		require.Equal(t, ones, got)
		require.NoError(t, d.Wait(t.Context(), first.Read(ccl.BufOf(got[:5]))))
		require.Equal(t, ones, got)
		require.NoError(t, d.Close())
		require.ErrorIs(t, d.Wait(t.Context(), c.Read(ccl.BufOf(want))), errClosed)
	}
}

func slicesEqual(a, b []float32) bool {
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return len(a) == len(b)
}

// After the first error nothing is read or written, each call has it, and it is told once. A context that
// ends lets go of one that waits.
func TestFirstError(t *testing.T) {
	full := errors.New("full")
	hold := make(chan struct{})
	f := &Faulty{file: &memoryFile{}, Fail: func(n int, write bool) error {
		switch n {
		case 1:
			<-hold
		case 2:
			return full
		case 3:
			return errors.New("the third operation was done")
		}
		return nil
	}}
	d := &Disk{}
	d.f = f
	c := d.Lay(ccl.TypeFloat64, 100)
	require.NoError(t, d.Reserve())
	told := 0
	require.NoError(t, d.Take(func(err error) {
		told++
		require.ErrorIs(t, err, full)
		require.NoError(t, d.Err(), "an operation could have it before the Comm has")
	}))
	d.start()
	b := ccl.BufOf(make([]float64, 100))
	first := c.Write(b)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.EqualError(t, d.Wait(ctx, first), "offload: waiting for memory: context canceled")
	close(hold)
	require.NoError(t, d.Wait(t.Context(), first))
	second, third := c.Write(b), c.Read(b)
	for range 2 {
		require.EqualError(t, d.Wait(t.Context(), second), "offload: full")
		require.EqualError(t, d.Wait(t.Context(), third), "offload: full")
		require.EqualError(t, d.Flush(t.Context()), "offload: full")
		_, err := c.ReadAt(make([]byte, 8), 0)
		require.EqualError(t, err, "offload: full")
	}
	require.NoError(t, d.Close())
	require.Equal(t, 1, told)
	require.Error(t, d.Wait(t.Context(), c.Read(ccl.BufOf(make([]float32, 100)))), "another type")
	for _, off := range []int64{-1, 801, 793} {
		_, err := c.WriteAt(make([]byte, 8), off)
		require.Error(t, err, "at %d", off)
	}
}
