package timeline_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/history/timeline"
	"github.com/goccl/goccl/train/zero"
)

type event struct {
	Name  string         `json:"name"`
	Phase string         `json:"ph"`
	Time  float64        `json:"ts"`
	Took  float64        `json:"dur"`
	Rank  int            `json:"pid"`
	Lane  int            `json:"tid"`
	Args  map[string]any `json:"args"`
}

// read returns the spans of a file by "rank lane: name", in order, and checks that lanes hold what they may.
func read(t testing.TB, file []byte) (spans []string, all []event) {
	var f struct {
		Events []event `json:"traceEvents"`
		Unit   string  `json:"displayTimeUnit"`
	}
	require.NoError(t, json.Unmarshal(file, &f))
	require.Equal(t, "ms", f.Unit)
	lanes, last := map[[2]int]string{}, 0.
	for _, e := range f.Events {
		switch {
		case e.Name == "thread_name":
			lanes[[2]int{e.Rank, e.Lane}] = e.Args["name"].(string)
		case e.Phase == "X":
			require.GreaterOrEqual(t, e.Time, last)
			require.GreaterOrEqual(t, e.Took, 0.)
			last = e.Time
			lane, known := lanes[[2]int{e.Rank, e.Lane}]
			require.True(t, known)
			spans, all = append(spans, fmt.Sprintf("%d %s: %s", e.Rank, lane, e.Name)), append(all, e)
		}
	}
	return spans, all
}

// What ranks add is in one file, with their durations and in their order; of more than is kept the last.
func TestWrite(t *testing.T) {
	var file bytes.Buffer
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		l, start := timeline.New(2), time.Now()
		for i, name := range []string{"embedding", "h.0", "head"} {
			l.Add("forward", name, start.Add(time.Duration(i-30*c.Rank()-100)*time.Second))
		}
		require.NoError(t, l.Write(t.Context(), c, &file))
	})
	spans, all := read(t, file.Bytes())
	require.Equal(t, []string{"2 forward: h.0", "2 forward: head", "1 forward: h.0", "1 forward: head", "0 forward: h.0", "0 forward: head"}, spans)
	require.Zero(t, all[0].Time)
	require.InDelta(t, 1e6, all[1].Time, 1, "a second later")
	require.InDelta(t, 159e6, all[0].Took, 10e6)
}

// The calls of zero are in the lane of their Comm, with the number of their unit; a Comm that is made of another has the
// same OnCall.
func TestCalls(t *testing.T) {
	var file bytes.Buffer
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		l := timeline.New(0)
		parent, err := c.SplitWith(t.Context(), 0, c.Rank(), func(o *ccl.Options) { o.OnCall = l.Call })
		require.NoError(t, err)
		defer parent.Close()
		own := ccltest.Split(t, parent, 0, c.Rank())
		own.SetName("dp")
		m, err := zero.New[float32, float32](t.Context(), own, [][]int{{4}, {6}}, &zero.Options{Stage: 2})
		require.NoError(t, err)
		for i := 1; i >= 0; i-- {
			_, err := m.Grads(t.Context(), i)
			require.NoError(t, err)
			require.NoError(t, m.Reduce(i))
		}
		require.NoError(t, m.Step(t.Context(), func(zero.Piece, []float32, []float32) error { return nil }))
		for i := range 2 {
			_, err := m.Params(t.Context(), i)
			require.NoError(t, err)
		}
		require.NoError(t, l.Write(t.Context(), c, &file))
		m.Release(0)
		m.Release(1)
		require.NoError(t, m.Close())
	})
	spans, _ := read(t, file.Bytes())
	for rank := range 2 {
		for _, call := range []string{"ReduceScatter of unit 2", "ReduceScatter of unit 1", "AllGather of unit 1", "AllGather of unit 2"} {
			require.Contains(t, spans, fmt.Sprintf("%d dp: %s", rank, call))
		}
	}
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space") }

// A rank 0 that cannot write tells all; a nil Timeline records nothing.
func TestFull(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		require.ErrorContains(t, timeline.New(0).Write(t.Context(), c, full{}), "no space")
		var none *timeline.Timeline
		none.Add("forward", "h.0", time.Now())
		none.Call(ccl.Observation{})
		require.EqualError(t, none.Write(t.Context(), nil, full{}), "timeline: Write without a Comm")
		if c.Rank() == 0 {
			none = timeline.New(1)
		}
		require.EqualError(t, none.Write(t.Context(), c, full{}), "timeline: Write: rank 1: the Timeline is nil")
		require.EqualError(t, timeline.New(1).Write(t.Context(), c, nil), "timeline: Write: rank 0: the Writer is nil")
	})
}

// Spans of a lane that overlap in part, as calls of a Group do, are in lanes beside each other; what is within another,
// or after it, is in its lane.
func TestOverlap(t *testing.T) {
	var file bytes.Buffer
	ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
		l := timeline.New(0)
		for i, took := range []time.Duration{10 * time.Second, 9 * time.Second, 20 * time.Second, 0} { // until now each
			time.Sleep(2 * time.Millisecond)
			l.Call(ccl.Observation{Comm: "dp", Call: ccl.Call{Kind: ccl.KindSend, Number: int32(i + 1)}, Took: took})
		}
		require.NoError(t, l.Write(t.Context(), c, &file))
	})
	_, all := read(t, file.Bytes())
	var got []string
	for _, e := range all {
		got = append(got, fmt.Sprint(e.Name, " in lane ", e.Lane))
	}
	require.Equal(t, []string{"Send of unit 3 in lane 1", "Send of unit 1 in lane 1", "Send of unit 2 in lane 2", "Send of unit 4 in lane 1"}, got)
}
