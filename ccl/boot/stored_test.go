package boot

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Every rank gets what every rank gave, in each round, empty values too; jobs with other prefixes do not meet.
func TestStore(t *testing.T) {
	s := newMemoryStore()
	for _, size := range []int{1, 2, 5} {
		var wg sync.WaitGroup
		for rank := range size {
			wg.Add(1)
			go func() {
				defer wg.Done()
				b, err := NewStore(s, fmt.Sprint("job", size), rank, size)
				require.NoError(t, err)
				assert.Equal(t, []int{rank, size}, []int{b.Rank(), b.Size()})
				for round := range 3 {
					all, err := b.AllGather(t.Context(), make([]byte, rank*round*100))
					assert.NoError(t, err)
					for r, v := range all {
						assert.Len(t, v, r*round*100)
					}
				}
			}()
		}
		wg.Wait()
	}
	require.Len(t, s.values, 3*(0+2+5), "each value has a key of its own: one of each rank but 0, and one of all")
}

// A job whose prefix another one has had ends with an error on all ranks: a rank that reads what ranks of that one
// have set does not find in it what it has set itself, and tells rank 0.
func TestStoreOfAnotherJob(t *testing.T) {
	s := newMemoryStore()
	gather := func(rank int, mine string) error {
		b, err := NewStore(s, "job", rank, 2)
		require.NoError(t, err)
		_, err = b.AllGather(t.Context(), []byte(mine))
		return err
	}
	var first sync.WaitGroup
	for rank := range 2 {
		first.Go(func() { assert.NoError(t, gather(rank, fmt.Sprint("first ", rank))) })
	}
	first.Wait()
	const text = "the store's value of job/1/all is of another job: each has a prefix of its own"
	err := gather(1, "second 1")
	require.ErrorIs(t, err, System)
	require.ErrorContains(t, err, text)
	require.ErrorContains(t, gather(0, "second 0"), "rank 1: "+text)
}

func TestStoreFails(t *testing.T) {
	for _, tc := range []struct{ rank, size int }{{0, 0}, {-1, 2}, {2, 2}} {
		_, err := NewStore(newMemoryStore(), "x", tc.rank, tc.size)
		require.EqualError(t, err, fmt.Sprintf("boot: there is no rank %d of %d", tc.rank, tc.size))
	}
	_, err := NewStore(nil, "x", 0, 1)
	require.EqualError(t, err, "boot: the Store is nil")
	synctest.Test(t, func(t *testing.T) {
		b, err := NewStore(newMemoryStore(), "x", 0, 2)
		require.NoError(t, err)
		_, err = b.AllGather(within(t, time.Second), nil)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.ErrorContains(t, err, "boot: rank 0 of 2: the store cannot get x/1/1")
	})
}

// badStore is a store that is slow, breaks off, or lies. do is asked first; where it has an answer, that counts.
type badStore struct {
	memoryStore
	do func(ctx context.Context, what, key string) (value []byte, err error, answers bool)
}

func (s badStore) Set(ctx context.Context, key string, value []byte) error {
	if _, err, answers := s.do(ctx, "set", key); answers {
		return err
	}
	return s.memoryStore.Set(ctx, key, value)
}

func (s badStore) Get(ctx context.Context, key string) ([]byte, error) {
	if v, err, answers := s.do(ctx, "get", key); answers {
		return v, err
	}
	return s.memoryStore.Get(ctx, key)
}

// Whatever a store does, all ranks get an error with the right code within the limit, or the right values.
func TestBadStores(t *testing.T) {
	broken := errors.New("the store has broken off")
	never := make(chan struct{}) // whatever the context
	t.Cleanup(func() { close(never) })
	for _, tc := range []struct {
		name  string
		limit time.Duration
		do    func(ctx context.Context, what, key string) (value []byte, err error, answers bool)
		codes [3]Code // by rank; 0: it gets the values
		text  string  // of rank 1's error; "": any
	}{
		{"slow, but in time", hallLong, func(context.Context, string, string) ([]byte, error, bool) {
			time.Sleep(5 * time.Millisecond)
			return nil, nil, false
		}, [3]Code{}, ""},
		{"never answers, whatever the context", 50 * time.Millisecond, func(context.Context, string, string) ([]byte, error, bool) {
			<-never
			return nil, broken, true
		}, [3]Code{Timeout, Timeout, Timeout}, "the store cannot set job/1/1: context deadline exceeded"},
		// Where rank 1 is when the time is over depends on the machine, so no words are demanded.
		{"never shows what rank 2 has set", 50 * time.Millisecond, func(ctx context.Context, what, key string) ([]byte, error, bool) {
			if what == "get" && key == "job/1/2" {
				<-ctx.Done()
				return nil, ctx.Err(), true
			}
			return nil, nil, false
		}, [3]Code{Timeout, Timeout, Timeout}, ""},
		{"breaks off for rank 0", hallLong, func(_ context.Context, what, key string) ([]byte, error, bool) {
			return nil, broken, what == "get" && key == "job/1/2"
		}, [3]Code{System, System, System}, "rank 0: the store cannot get job/1/2: the store has broken off"},
		{"breaks off for all", hallLong, func(context.Context, string, string) ([]byte, error, bool) {
			return nil, broken, true
		}, [3]Code{System, System, System}, "the store cannot set job/1/1: the store has broken off"},
		{"has empty values for what nobody has set", hallLong, func(_ context.Context, what, key string) ([]byte, error, bool) {
			return nil, nil, what == "get" && key != "job/1/all"
		}, [3]Code{System, System, System}, "rank 0: the store has an empty value of job/1/1, which nobody has set"},
		{"has something else for a rank's value", hallLong, func(_ context.Context, what, key string) ([]byte, error, bool) {
			return []byte("else"), nil, what == "get" && key == "job/1/2"
		}, [3]Code{System, System, System}, "rank 0: the store's value of job/1/2 is not what rank 2 has set"},
		{"has something else for all values", hallLong, func(_ context.Context, what, key string) ([]byte, error, bool) {
			return []byte("a\x01"), nil, what == "get" && key == "job/1/all"
		}, [3]Code{0, System, System}, "the store's value of job/1/all is not what rank 0 has set"},
		{"has a verdict that is none", hallLong, func(_ context.Context, what, key string) ([]byte, error, bool) {
			return []byte("f{}"), nil, what == "get" && key == "job/1/all"
		}, [3]Code{0, System, System}, "the store's value of job/1/all is not what rank 0 has set"},
		{"drops what is set", 50 * time.Millisecond, func(_ context.Context, what, key string) ([]byte, error, bool) {
			return nil, nil, what == "set"
		}, [3]Code{Timeout, Timeout, Timeout}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := badStore{newMemoryStore(), tc.do}
			ctx, cancel := context.WithTimeout(t.Context(), tc.limit)
			defer cancel()
			begun := time.Now()
			var all sync.WaitGroup
			for rank, code := range tc.codes {
				all.Go(func() {
					b, err := NewStore(s, "job", rank, len(tc.codes))
					require.NoError(t, err)
					values, err := b.AllGather(ctx, []byte{byte(rank)})
					if code == 0 {
						assert.NoError(t, err)
						assert.Equal(t, [][]byte{{0}, {1}, {2}}, values)
						return
					}
					assert.ErrorIs(t, err, code, "rank %d", rank)
					e := (*Error)(nil)
					if assert.ErrorAs(t, err, &e) {
						assert.Equal(t, []int{rank, 3}, []int{e.Rank, e.Size})
						if rank == 1 && tc.text != "" {
							assert.Equal(t, tc.text, e.Text)
						}
					}
				})
			}
			all.Wait()
			assert.Less(t, time.Since(begun), hallLong, "it ends by itself")
		})
	}
}

func FuzzUnpack(f *testing.F) {
	f.Add(pack([][]byte{nil, []byte("a"), []byte("bc")}))
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		values := make([][]byte, 3)
		if unpack(b, values) {
			again := make([][]byte, 3)
			require.True(t, unpack(pack(values), again))
			require.Equal(t, values, again)
		}
	})
}
