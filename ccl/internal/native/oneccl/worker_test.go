//go:build oneccl && cgo && linux

package oneccl

import (
	"testing"
	"time"

	"github.com/goccl/goccl/internal/op"
	"github.com/stretchr/testify/require"
)

// TestWaitingBehindLost has a job that nothing stops wait for its turn behind one that never ends, and is given up.
func TestWaitingBehindLost(t *testing.T) {
	w := newWorker()
	inside, leave, stop := make(chan struct{}), make(chan struct{}), make(chan struct{})
	first, second := make(chan error, 1), make(chan error, 1)
	go func() { first <- w.run(newJob(func() { close(inside); <-leave }), stop) }()
	<-inside
	go func() { second <- w.run(newJob(func() {}), nil) }()
	require.Never(t, func() bool { return len(second) > 0 }, 20*time.Millisecond, time.Millisecond)
	close(stop)
	require.ErrorIs(t, <-first, errGivenUp)
	select {
	case err := <-second:
		require.ErrorIs(t, err, errStuck)
	case <-time.After(time.Minute):
		t.Fatal("it still waits")
	}
	require.ErrorIs(t, w.run(newJob(func() {}), nil), errStuck)
	close(leave) // and when it has come back, others are made again
	require.Eventually(t, func() bool { return w.run(newJob(func() {}), nil) == nil }, time.Minute, time.Millisecond)
}

// TestGivenUpWhenDone has a job be given up in the moment in which it is done: what waits behind it does not hear of a call
// that is stuck, since none is.
func TestGivenUpWhenDone(t *testing.T) {
	w := &worker{jobs: make(chan *job), lost: make(chan struct{})}
	j := newJob(func() {})
	j.state.Store(ended)
	j.done <- struct{}{}
	lost := w.given() // as run sees it that waits for its turn
	require.NoError(t, w.giveUp(j))
	select {
	case <-lost:
		t.Fatal("what waits hears of a call that is stuck")
	default:
	}
}

// TestAbortedLeavesThePlan has Run and Issue refuse before they write what a call that was given up may read.
func TestAbortedLeavesThePlan(t *testing.T) {
	e := &comm{device: -1, gone: make(chan struct{}), plan: plan{size: 2, steps: []step{{what: send, count: 7}}}}
	e.Abort()
	calls := []*op.Call{{Head: op.Head{Record: op.Record{Kind: op.Barrier}}}}
	require.ErrorIs(t, e.Run(t.Context(), calls), errAborted)
	_, err := e.Issue(1, nil, 0)
	require.ErrorIs(t, err, errAborted)
	require.Equal(t, []step{{what: send, count: 7}}, e.plan.steps)
}
