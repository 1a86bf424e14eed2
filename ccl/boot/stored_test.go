package boot

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// mapStore is a Store in memory.
type mapStore struct {
	mu     sync.Mutex
	values map[string][]byte
	news   chan struct{} // closed at the next Set
}

func newMapStore() *mapStore {
	return &mapStore{values: map[string][]byte{}, news: make(chan struct{})}
}

func (s *mapStore) Set(_ context.Context, key string, value []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, there := s.values[key]; there {
		return fmt.Errorf("%s is set twice", key)
	}
	s.values[key] = append([]byte{}, value...)
	close(s.news)
	s.news = make(chan struct{})
	return nil
}

func (s *mapStore) Get(ctx context.Context, key string) ([]byte, error) {
	for {
		s.mu.Lock()
		v, ok := s.values[key]
		news := s.news
		s.mu.Unlock()
		if ok {
			return v, nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (s *mapStore) Wait(ctx context.Context, keys ...string) error {
	for _, k := range keys {
		if _, err := s.Get(ctx, k); err != nil {
			return err
		}
	}
	return nil
}

func (s *mapStore) Add(context.Context, string, int64) (int64, error) {
	return 0, errors.New("not here")
}

// Every rank gets what every rank gave, in each round, empty values too; jobs with other prefixes do not meet.
func TestStore(t *testing.T) {
	s := newMapStore()
	for _, size := range []int{1, 2, 5} {
		var wg sync.WaitGroup
		for rank := range size {
			wg.Add(1)
			go func() {
				defer wg.Done()
				b, err := NewStore(s, fmt.Sprint("job", size), rank, size)
				if !assert.NoError(t, err) {
					return
				}
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
}

func TestStoreFails(t *testing.T) {
	for _, tc := range []struct{ rank, size int }{{0, 0}, {-1, 2}, {2, 2}} {
		_, err := NewStore(newMapStore(), "x", tc.rank, tc.size)
		require.EqualError(t, err, fmt.Sprintf("boot: there is no rank %d of %d", tc.rank, tc.size))
	}
	_, err := NewStore(nil, "x", 0, 1)
	require.EqualError(t, err, "boot: the Store is nil")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	b, err := NewStore(newMapStore(), "x", 0, 2)
	require.NoError(t, err)
	_, err = b.AllGather(ctx, nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "boot: rank 0 of 2: the store cannot get x/1/1")
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
