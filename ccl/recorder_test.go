package ccl

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/op"
)

// The recorder has the last calls, each as far as it has got, and forgets the others.
func TestRecorder(t *testing.T) {
	var r recorder
	var b backlog
	assert.Empty(t, r.kept(&b, ringCalls))
	assert.Equal(t, "none", callsText(nil))
	for i := range uint64(ringCalls + 2) {
		k := &call.Call{Head: op.Head{Record: call.Record{Seq: i + 1, Kind: call.Send, Type: op.Int8, Count: i, Root: 1}}}
		e := r.begin(k, nil, int64(10*i))
		assert.Equal(t, int64(10*i), k.Start)
		r.end(e, Complete, int64(10*i+5))
	}
	all := r.kept(&b, ringCalls)
	assert.Len(t, all, ringCalls)
	assert.EqualValues(t, 3, all[0].Seq)
	assert.Equal(t, Call{Seq: ringCalls + 2, Count: ringCalls + 1, Kind: KindSend, Type: TypeInt8, State: Complete, Root: 1,
		Start: 10 * (ringCalls + 1), End: 10*(ringCalls+1) + 5}, all[ringCalls-1])
	assert.Equal(t, all[ringCalls-2:], r.kept(&b, 2))
	assert.Equal(t, "Send #65 int8 x 64 peer 1 complete; Send #66 int8 x 65 peer 1 complete", callsText(r.kept(&b, 2)))
}

// A queued call is noted when it is issued, marked when it runs and ends, and no more once its place is another's.
func TestRecorderQueued(t *testing.T) {
	var r recorder
	var b backlog
	k := &call.Call{Head: op.Head{Record: call.Record{Kind: call.Barrier}}}
	r.queue(k)
	assert.Equal(t, []Call{{Seq: 1, Kind: KindBarrier}}, r.kept(&b, 1))
	r.mark(k, Running, 7)
	assert.Equal(t, []Call{{Seq: 1, Kind: KindBarrier, State: Running, Start: 7}}, r.kept(&b, 1))
	r.mark(k, Failed, 9)
	assert.Equal(t, []Call{{Seq: 1, Kind: KindBarrier, State: Failed, Start: 7, End: 9}}, r.kept(&b, 1))
	r.mark(&call.Call{Head: op.Head{Record: call.Record{Seq: 1 + ringCalls}}}, Running, 11)
	assert.Equal(t, Failed, r.kept(&b, 1)[0].State, "another call's place")
}

// A call on a device is complete once its stream has passed it.
func TestRecorderOnDevice(t *testing.T) {
	var r recorder
	var b backlog
	d := &deviceStream{}
	for range 2 {
		r.begin(&call.Call{Head: op.Head{Record: call.Record{Kind: call.AllReduce, State: uint8(Running)}}}, d, 1)
	}
	d.passed.Store(1)
	d.passedAt.Store(30)
	calls := r.kept(&b, 2)
	assert.Equal(t, []State{Complete, Running}, []State{calls[0].State, calls[1].State})
	assert.Equal(t, []time.Duration{30, 0}, []time.Duration{calls[0].End, calls[1].End})
}

// The place of the call that slept last is told, and told again without allocating.
func TestLastCaller(t *testing.T) {
	var c callers
	assert.Empty(t, c.last())
	var seq uint64
	engine := func() { seq++; c.note(seq) } // stands for newComm's
	for range engineFrames - 3 {
		inner := engine
		engine = func() { inner() }
	}
	var got string
	assert.Zero(t, testing.AllocsPerRun(10, func() {
		engine()
		got = c.last()
	}))
	assert.Equal(t, c.of(seq), got)
	assert.Contains(t, got, "allocs.go:", "of package testing")
	engine()
	assert.Contains(t, c.last(), "testing.go:", "another place")
}
