package ccl_test

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// fromElsewhere is the store of a process on another host, as far as the others know: what it says of itself, and what it hears of where all
// meet, are changed.
type fromElsewhere struct {
	boot.Store
	says, hears map[string]any
}

func (s fromElsewhere) Set(ctx context.Context, key string, value []byte) error {
	if strings.HasPrefix(key, "goccl/here/") {
		value = changed(value, s.says)
	}
	return s.Store.Set(ctx, key, value)
}

func (s fromElsewhere) Get(ctx context.Context, key string) ([]byte, error) {
	value, err := s.Store.Get(ctx, key)
	if err == nil && strings.HasPrefix(key, "goccl/seats/") {
		value = changed(value, s.hears)
	}
	return value, err
}

func changed(text []byte, fields map[string]any) []byte {
	var of map[string]any
	if json.Unmarshal(text, &of) != nil {
		return text
	}
	for name, value := range fields {
		of[name] = value
	}
	text, _ = json.Marshal(of)
	return text
}

// A newcomer to which rank 0's host has no way, and one that does not reach rank 0, end and say why. The others go on as they were, and
// do not wait for it again.
func TestGrowOutOfReach(t *testing.T) {
	for _, tc := range []struct {
		name     string
		store    fromElsewhere
		code     ccl.Code
		newcomer string
		lead     string
	}{
		{"rank 0's host has no way to it", fromElsewhere{says: map[string]any{"at": []byte("another host"), "addrs": []string{"fe80::1"}}}, ccl.ErrBackend,
			"has no way to its host (fe80::1): ", "ccl: Grow does not take in a process on host "},
		{"it does not reach rank 0", fromElsewhere{hears: map[string]any{"addr": "127.0.0.1:1"}}, ccl.ErrTimeout,
			"rank 0 was not found at 127.0.0.1:1 within ", "ccl: Grow came to nothing, and the job goes on with 2 ranks; to join were a process on host "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			j := newGrowing(t)
			ended := make(chan struct{})
			var said [2]logs
			j.startWith(2, nil, func(r int) *ccl.Options {
				o := j.options(ccl.Options{})
				o.Log = slog.New(slog.NewTextHandler(&said[r], nil))
				return o
			}, func(r int, c *ccl.Comm) {
				defer c.Close()
				if r == 0 {
					late := *j.options(ccl.Options{})
					tc.store.Store = j.hall
					late.Store = tc.store
					j.all.Go(func() {
						defer close(ended)
						_, err := ccl.Join(j.ctx, &late)
						wants(t, err, tc.code)
						assert.ErrorContains(t, err, tc.newcomer)
						assert.ErrorContains(t, err, ": Join: ")
					})
				}
				for over := []int{0}; j.ctx.Err() == nil; time.Sleep(time.Millisecond) {
					select {
					case <-ended:
						over[0] = 1
					default:
					}
					if assert.NoError(t, ccl.Broadcast(j.ctx, c, over, 0)); over[0] > 0 {
						break
					}
					same, err := ccl.Grow(j.ctx, c, 3)
					assert.NoError(t, err)
					assert.Same(t, c, same)
				}
				if r == 0 {
					assert.Contains(t, said[r].String(), tc.lead)
				}
				works(j.ctx, t, c)
			})
		})
	}
}

// A newcomer with another secret is refused by the store, in words, and the job does not notice.
func TestGrowWithAnotherSecret(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), long)
	defer cancel()
	ours, theirs := bytes.Repeat([]byte("o"), 32), bytes.Repeat([]byte("t"), 32)
	hall, err := boot.ListenHall("127.0.0.1:0", ours)
	require.NoError(t, err)
	defer hall.Close()
	for place, says := range map[string]string{hall.Addr(): "the hall at " + hall.Addr(), t.TempDir(): "was written with another secret"} {
		store, err := boot.OpenStore(place, ours)
		require.NoError(t, err)
		b := boot.Local(1)[0]
		defer b.Close()
		c, err := ccl.NewComm(ctx, b, &ccl.Options{Store: store})
		require.NoError(t, err)
		defer c.Close()
		other, err := boot.OpenStore(place, theirs)
		require.NoError(t, err)
		_, err = ccl.Join(ctx, &ccl.Options{Store: other})
		wants(t, err, ccl.ErrUnauthorized)
		assert.ErrorContains(t, err, says)
		same, err := ccl.Grow(ctx, c, 2)
		require.NoError(t, err)
		require.Same(t, c, same)
	}
}
