package ccltest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// A rank's testing.TB prints with the rank's number, ends the rank alone, and knows how it ended.
func TestRankTB(t *testing.T) {
	for _, tc := range []struct {
		name    string
		f       func(t testing.TB)
		errors  []string
		logs    []string
		outcome outcome
	}{
		{"passes", func(t testing.TB) { t.Logf("at %d", 3) }, nil, []string{"rank 7: at 3"}, passed},
		{"Error goes on", func(t testing.TB) { t.Error("one", 1); t.Errorf("two") }, []string{"rank 7: one 1", "rank 7: two"}, nil, failed},
		{"Fatal ends", func(t testing.TB) { t.Fatal("one"); t.Error("two") }, []string{"rank 7: one"}, nil, failed},
		{"Fatalf ends", func(t testing.TB) { t.Fatalf("%d", 1); t.Error("two") }, []string{"rank 7: 1"}, nil, failed},
		{"Fail", func(t testing.TB) { t.Fail(); t.Log("on") }, []string{"rank 7: failed"}, []string{"rank 7: on"}, failed},
		{"FailNow", func(t testing.TB) { t.FailNow() }, []string{"rank 7: failed"}, nil, failed},
		{"FailNow after an error", func(t testing.TB) { t.Error("one"); t.FailNow() }, []string{"rank 7: one"}, nil, failed},
		{"Skip ends", func(t testing.TB) { t.Skip("why"); t.Error("two") }, nil, []string{"rank 7: why"}, skipped},
		{"Skipf ends", func(t testing.TB) { t.Skipf("%d", 1) }, nil, []string{"rank 7: 1"}, skipped},
		{"Goexit", func(t testing.TB) { (&recorder{}).FailNow() }, []string{"rank 7: ended by runtime.Goexit"}, nil, failed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			rec := &recorder{TB: t}
			r := newRank(&log{TB: rec}, 7, nil)
			defer r.cancel()
			r.guard(func() { tc.f(r) })
			require.Equal(t, tc.errors, rec.errors)
			require.Equal(t, tc.logs, rec.logs)
			require.Equal(t, tc.outcome, r.outcome())
			require.Equal(t, tc.outcome == failed, r.Failed())
			require.Equal(t, tc.outcome == skipped, r.Skipped())
		})
	}
}

// Cleanups run last first, those too that a cleanup adds, and each though one before it ends its goroutine.
func TestRankCleanup(t *testing.T) {
	rec := &recorder{TB: t}
	r := newRank(&log{TB: rec}, 0, nil)
	defer r.cancel()
	var order []int
	r.Cleanup(func() { order = append(order, 1) })
	r.Cleanup(func() { order = append(order, 2); r.Fatal("in a cleanup") })
	r.Cleanup(func() { r.Cleanup(func() { order = append(order, 3) }); order = append(order, 4) })
	r.clean()
	require.Equal(t, []int{4, 3, 2, 1}, order)
	require.Equal(t, []string{"rank 0: in a cleanup"}, rec.errors)
	require.Empty(t, r.cleanups)
}

// A rank that Kill has ended reports nothing.
func TestRankKilled(t *testing.T) {
	rec := &recorder{TB: t}
	r := newRank(&log{TB: rec}, 0, nil)
	r.killed.Store(true)
	r.Error("of no interest")
	require.Empty(t, rec.errors)
	require.Equal(t, passed, r.outcome())
	r.abort(errors.New("over"))
	require.Error(t, r.Context().Err())
}

// Only an abort that began with a failed rank is one of the test's own.
func TestByTest(t *testing.T) {
	aborted := func(cause string) error {
		return fmt.Errorf("wrapped: %w", &ccl.Error{Code: ccl.ErrAborted, Err: errors.New(cause)})
	}
	require.True(t, byTest(aborted(mark+"rank 1 failed")))
	require.False(t, byTest(aborted("the program's own")))
	require.False(t, byTest(&ccl.Error{Code: ccl.ErrRankLost, Err: errors.New(mark)}))
	require.False(t, byTest(&ccl.Error{Code: ccl.ErrAborted}))
	require.False(t, byTest(nil))
	require.Equal(t, "a 1 b", line([]any{"a", 1, "b"}))
}
