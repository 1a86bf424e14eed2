package boot

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var hallSecret = bytes.Repeat([]byte("s3cret! "), 4)

// stores are two ends of each kind of store: what one leaves, the other finds.
var stores = []struct {
	name string
	make func(t *testing.T, secret []byte) (a, b Store)
}{
	{"hall", func(t *testing.T, secret []byte) (a, b Store) {
		h := hallFor(t, secret)
		b, err := DialHall(h.Addr(), secret)
		require.NoError(t, err)
		return h, b
	}},
	{"two clients of a hall", func(t *testing.T, secret []byte) (a, b Store) {
		h := hallFor(t, secret)
		a, err := OpenStore(h.Addr(), secret)
		require.NoError(t, err)
		b, err = OpenStore(h.Addr(), secret)
		require.NoError(t, err)
		return a, b
	}},
	{"directory", func(t *testing.T, secret []byte) (a, b Store) {
		dir := t.TempDir()
		a, err := OpenStore(dir, secret)
		require.NoError(t, err)
		b, err = OpenStore(dir, secret)
		require.NoError(t, err)
		return a, b
	}},
}

func hallFor(t *testing.T, secret []byte) *Hall {
	h, err := ListenHall("127.0.0.1:0", secret)
	require.NoError(t, err)
	t.Cleanup(func() { h.Close() })
	return h
}

const hallLong = 30 * time.Second

// Every store does the same: values of any size, a Get that waits, a later Set that counts, numbers that many change at once.
func TestStores(t *testing.T) {
	for _, tc := range stores {
		for _, secret := range [][]byte{nil, hallSecret} {
			t.Run(fmt.Sprintf("%s, secret %v", tc.name, secret != nil), func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), hallLong)
				defer cancel()
				a, b := tc.make(t, secret)
				for i, v := range [][]byte{nil, {0}, bytes.Repeat([]byte("x"), 1<<20)} {
					key := fmt.Sprintf("value/%d \x00?", i)
					require.NoError(t, a.Set(ctx, key, v))
					got, err := b.Get(ctx, key)
					require.NoError(t, err)
					require.Equal(t, len(v), len(got))
					require.True(t, bytes.Equal(v, got))
				}
				require.NoError(t, b.Set(ctx, "again", []byte("1")))
				require.NoError(t, a.Set(ctx, "again", []byte("2")))
				got, err := b.Get(ctx, "again")
				require.NoError(t, err)
				require.Equal(t, "2", string(got))

				var all sync.WaitGroup
				for range 3 {
					all.Go(func() {
						v, err := b.Get(ctx, "late")
						assert.NoError(t, err)
						assert.Equal(t, "here", string(v))
						assert.NoError(t, b.Wait(ctx, "again", "late"))
					})
				}
				require.NoError(t, a.Set(ctx, "late", []byte("here")))
				all.Wait()

				sums := make(chan int64, 40)
				for _, s := range []Store{a, b} {
					all.Go(func() {
						for range 20 {
							n, err := s.Add(ctx, "number", 3)
							assert.NoError(t, err)
							sums <- n
						}
					})
				}
				all.Wait()
				close(sums)
				seen := map[int64]bool{}
				for n := range sums {
					require.False(t, seen[n], "%d twice", n)
					seen[n] = true
				}
				require.Len(t, seen, 40)
				n, err := a.Add(ctx, "number", 0)
				require.NoError(t, err)
				require.Equal(t, int64(120), n)
				n, err = b.Add(ctx, "number", -121)
				require.NoError(t, err)
				require.Equal(t, int64(-1), n)
				n, err = b.Add(ctx, "other", 0)
				require.NoError(t, err)
				require.Zero(t, n)
			})
		}
	}
}

// What cannot be is an error with a code, and the end of a context ends a wait.
func TestStoresRefuse(t *testing.T) {
	for _, tc := range stores {
		t.Run(tc.name, func(t *testing.T) {
			_, s := tc.make(t, nil)
			_, err := s.Add(t.Context(), "n", 0) // there is a connection
			require.NoError(t, err)
			short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
			defer cancel()
			_, err = s.Get(short, "nobody")
			require.ErrorIs(t, err, Timeout)
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.ErrorContains(t, err, "nobody")
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			require.ErrorIs(t, s.Wait(ended, "nobody"), Canceled)
			ctx := t.Context()
			require.ErrorIs(t, s.Set(ctx, "", nil), Argument)
			require.ErrorIs(t, s.Set(ctx, string(make([]byte, MaxKey+1)), nil), Argument)
			require.ErrorIs(t, s.Set(ctx, "x", make([]byte, MaxStored+1)), Argument)
			_, err = s.Add(ctx, "", 1)
			require.ErrorIs(t, err, Argument)
			for _, end := range []int64{math.MaxInt64, math.MinInt64} {
				key, one := fmt.Sprint(end), int64(1)
				if end < 0 {
					one = -1
				}
				n, err := s.Add(ctx, key, end)
				require.NoError(t, err)
				require.Equal(t, end, n)
				for _, more := range []int64{one, end} {
					_, err = s.Add(ctx, key, more)
					require.ErrorIs(t, err, Argument)
					require.ErrorContains(t, err, "no int64")
				}
				n, err = s.Add(ctx, key, -one)
				require.NoError(t, err)
				require.Equal(t, end-one, n, "it has stayed")
			}
			var none context.Context
			require.ErrorIs(t, s.Set(none, "x", nil), Argument)
			require.NoError(t, s.Set(ctx, "x", nil), "the store is good")
		})
	}
}

// A name that this process has taken is its own, also where the file system says that it was taken before: NFS does, whose answer to the
// first request was lost.
func TestClaim(t *testing.T) {
	dir := t.TempDir()
	file, other, path := filepath.Join(dir, "file"), filepath.Join(dir, "other"), filepath.Join(dir, "path")
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	require.NoError(t, os.WriteFile(other, nil, 0o600))
	twice := func(file, path string) error {
		return errors.Join(os.Link(file, path), os.Link(file, path))
	}
	made, err := claim(file, path, twice)
	require.NoError(t, err)
	require.True(t, made)
	for _, link := range []func(file, path string) error{os.Link, twice} {
		made, err = claim(other, path, link)
		require.NoError(t, err)
		require.False(t, made)
	}
	_, err = claim(filepath.Join(dir, "none"), path, os.Link)
	require.Error(t, err)
}

// A process with another secret, or none, gets nothing from a store, nor can it change what the job reads.
func TestStoreSecret(t *testing.T) {
	other := bytes.Repeat([]byte("another!"), 4)
	h := hallFor(t, hallSecret)
	for _, secret := range [][]byte{nil, other} {
		s, err := DialHall(h.Addr(), secret)
		require.NoError(t, err)
		require.ErrorIs(t, s.Set(t.Context(), "x", nil), Unauthorized)
	}
	require.Empty(t, h.values)

	dir := t.TempDir()
	mine, err := FileStore(dir, hallSecret)
	require.NoError(t, err)
	theirs, err := FileStore(dir, other)
	require.NoError(t, err)
	require.NoError(t, theirs.Set(t.Context(), "x", []byte("mine")))
	_, err = theirs.Add(t.Context(), "n", 1)
	require.NoError(t, err)
	_, err = mine.Get(t.Context(), "x")
	require.ErrorIs(t, err, Unauthorized)
	require.ErrorContains(t, err, "the store's value of x, in "+dir)
	require.ErrorContains(t, err, "Use another directory for each job")
	_, err = mine.Add(t.Context(), "n", 1)
	require.ErrorIs(t, err, Unauthorized)
}

// A file that is cut off, changed, or moved to another key is not believed.
func TestFileStoreDamaged(t *testing.T) {
	for name, harm := range map[string]func(s *fileStore, text []byte) []byte{
		"empty":   func(*fileStore, []byte) []byte { return nil },
		"cut off": func(_ *fileStore, b []byte) []byte { return b[:len(b)-1] },
		"changed": func(_ *fileStore, b []byte) []byte { b[len(b)-1] ^= 1; return b },
		"of another key": func(s *fileStore, _ []byte) []byte {
			v := []byte("value")
			return s.file("y", 0, v)
		},
	} {
		t.Run(name, func(t *testing.T) {
			store, err := FileStore(t.TempDir(), hallSecret)
			require.NoError(t, err)
			s := store.(*fileStore)
			require.NoError(t, s.Set(t.Context(), "x", []byte("value")))
			text, err := os.ReadFile(s.path("x", 0))
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(s.path("x", 0), harm(s, text), 0o600))
			_, err = s.Get(t.Context(), "x")
			require.ErrorIs(t, err, Unauthorized)
		})
	}
}

func TestOpenStore(t *testing.T) {
	for _, place := range []string{"nohost", "host:0", "host:70000", ":1234", ""} {
		_, err := OpenStore(place, nil)
		require.ErrorIs(t, err, Argument, place)
	}
	_, err := OpenStore(filepath.Join(t.TempDir(), "none"), nil)
	require.ErrorIs(t, err, Argument)
	t.Setenv("GOCCL_HALL", "")
	s, err := EnvStore()
	require.NoError(t, err)
	require.Nil(t, s)
	t.Setenv("GOCCL_HALL", "nowhere")
	_, err = EnvStore()
	require.EqualError(t, err, `boot: GOCCL_HALL=nowhere: "nowhere" is no place of a hall: host:port, with a port from 1 to 65535, or a directory, /dir`)
}
