package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// clients sends 300 requests, 20 at a time. Each third client goes away as soon as it has sent its
// request, so before its turn, in the middle of a call, or after it. It returns how many were answered.
func clients(t testing.TB, url string) (answered int64) {
	var next, right atomic.Int64
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			for {
				i := next.Add(1)
				if i > 300 {
					return
				}
				status, body, err := get(t.Context(), fmt.Sprintf("%s/count?of=%d", url, i), i%3 == 0)
				if err != nil {
					assert.Zero(t, i%3, "request %d, of a client that stays: %v", i, err)
					assert.ErrorIs(t, err, context.Canceled)
					continue
				}
				assert.Equal(t, http.StatusOK, status)
				assert.Equal(t, fmt.Sprintln(most/i), body)
				right.Add(1)
			}
		})
	}
	all.Wait()
	return right.Load()
}

// get asks for url, and goes away once it has asked if away is set.
func get(ctx context.Context, url string, away bool) (status int, body string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if away {
		ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { cancel() }})
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text), err
}

// Clients that go away in the middle disturb nobody: all others are answered, rightly, and the job ends
// well on every rank once it is told to stop.
func TestClientsGoAway(t *testing.T) {
	for _, n := range []int{1, 2, 3} {
		for hosts := 1; hosts <= n; hosts += max(n-1, 1) {
			ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
				if c.Rank() > 0 {
					require.NoError(t, work(t.Context(), c))
					return
				}
				l, err := net.Listen("tcp", "127.0.0.1:0")
				require.NoError(t, err)
				stop, signal := context.WithCancel(t.Context())
				served := make(chan error, 1)
				go func() { served <- serve(t.Context(), stop, c, l) }()
				answered := clients(t, "http://"+l.Addr().String())
				require.GreaterOrEqual(t, answered, int64(200))
				status, _, err := get(t.Context(), "http://"+l.Addr().String()+"/count?of=0", false)
				require.NoError(t, err)
				require.Equal(t, http.StatusBadRequest, status, "and no rank hears of it")
				signal()
				require.NoError(t, <-served)
				require.NoError(t, c.Err())
			}, ccltest.Hosts(hosts))
		}
	}
}

// A rank that is lost, in a request or between two, ends the service: clients get an answer that says so,
// and serve the cause.
func TestRankIsLost(t *testing.T) {
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		if c.Rank() > 0 {
			require.ErrorIs(t, work(t.Context(), c), ccl.ErrRankLost)
			return
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		served := make(chan error, 1)
		go func() { served <- serve(t.Context(), t.Context(), c, l) }()
		for i := 1; ; i++ {
			status, body, err := get(t.Context(), fmt.Sprintf("http://%s/count?of=%d", l.Addr(), i), false)
			if err == nil && status == http.StatusOK {
				require.Equal(t, fmt.Sprintln(most/i), body)
				continue
			}
			if err == nil { // else the server has closed its door by now
				require.Equal(t, http.StatusServiceUnavailable, status)
			}
			break
		}
		require.ErrorIs(t, <-served, ccl.ErrRankLost)
	}, ccltest.Kill(2, 9))
}
