package prometheus_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	client "github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/ccl/ccltest"
	metrics "github.com/goccl/goccl/interop/prometheus"
)

// gathered is what a registry has of m: for each metric with its labels the value, of a histogram how many.
func gathered(t *testing.T, m *metrics.Metrics) map[string]float64 {
	r := client.NewPedanticRegistry() // which compares Describe with Collect
	require.NoError(t, r.Register(m))
	families, err := r.Gather()
	require.NoError(t, err)
	got := map[string]float64{}
	for _, f := range families {
		for _, x := range f.GetMetric() {
			var labels []string
			for _, l := range x.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			name := f.GetName() + "{" + strings.Join(labels, ",") + "}"
			if h := x.GetHistogram(); h != nil {
				got[name] = float64(h.GetSampleCount())
				require.GreaterOrEqual(t, h.GetSampleSum(), 0.)
				require.Less(t, h.GetSampleSum(), 60., "seconds")
			} else {
				got[name] = x.GetCounter().GetValue()
			}
		}
	}
	return got
}

// Each call of both ranks is counted, with its bytes, in the Comm and in one that was split off; and what the program itself wants
// to see, it sees.
func TestCalls(t *testing.T) {
	m := metrics.New()
	var mu sync.Mutex
	seen := 0
	o := &ccl.Options{OnCall: func(ccl.Observation) { mu.Lock(); seen++; mu.Unlock() }}
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		ctx, part := t.Context(), ccltest.Split(t, c, 0, 0)
		part.SetName("dp")
		x := make([]float32, 256)
		for range 3 {
			require.NoError(t, ccl.AllReduce(ctx, c, x, x, ccl.Sum))
			require.NoError(t, ccl.Broadcast(ctx, part, x[:64], 0))
		}
		require.NoError(t, c.On(nil).AllReduce(ccl.BufOf(x), ccl.InPlace(), ccl.Max).Wait(ctx))
	}, ccltest.With(*m.Watch(o)))
	got := gathered(t, m)
	require.Equal(t, 8., got["goccl_call_seconds{call=AllReduce,comm=world}"], "%v", got)
	require.Equal(t, 8*1024., got["goccl_call_bytes_total{call=AllReduce,comm=world}"])
	require.Equal(t, 6., got["goccl_call_seconds{call=Broadcast,comm=dp}"])
	require.Equal(t, 6*256., got["goccl_call_bytes_total{call=Broadcast,comm=dp}"])
	require.Zero(t, got["goccl_call_device_seconds_total{call=AllReduce,comm=world}"])
	for name := range got {
		require.NotContains(t, name, "failures")
		require.NotContains(t, name, "errors")
		require.NotContains(t, name, "lost")
	}
	total := 0.
	for name, n := range got {
		if strings.HasPrefix(name, "goccl_call_seconds{") {
			total += n
		}
	}
	require.Equal(t, float64(seen), total)
}

// A call that fails, and a Comm that does, are counted by their kind; what the program itself wants to hear, it hears.
func TestFailures(t *testing.T) {
	m := metrics.New()
	var mu sync.Mutex
	heard := 0
	o := &ccl.Options{OnFailure: func(e *ccl.Error) { mu.Lock(); heard++; mu.Unlock() }}
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		if c.Rank() == 1 {
			c.Abort(errors.New("enough"))
		} else {
			require.ErrorIs(t, ccl.Barrier(t.Context(), c), ccl.ErrAborted)
		}
	}, ccltest.With(*m.Watch(o)))
	// A rank that makes no call hears of the failure beside what it does.
	require.Eventually(t, func() bool { mu.Lock(); defer mu.Unlock(); return heard == 2 }, time.Minute, time.Millisecond)
	got := gathered(t, m)
	require.Equal(t, 2., got["goccl_comm_failures_total{comm=world,error=aborted}"], "%v", got)
	require.Equal(t, 1., got["goccl_call_errors_total{call=Barrier,comm=world,error=aborted}"], "%v", got)

	failed := m.Watch(nil).OnFailure
	failed(&ccl.Error{Code: ccl.ErrRankLost, Peer: 3})
	failed(&ccl.Error{Code: ccl.ErrRankLost, Peer: 1, Comm: "dp"})
	failed(&ccl.Error{Code: ccl.ErrTimeout, Comm: "dp"})
	m.Watch(nil).OnCall(ccl.Observation{Comm: "dp", Err: errors.New("of somebody's"), OnDevice: time.Second})
	got = gathered(t, m)
	require.Equal(t, 1., got["goccl_ranks_lost_total{comm=world}"])
	require.Equal(t, 1., got["goccl_ranks_lost_total{comm=dp}"])
	require.Equal(t, 1., got["goccl_comm_failures_total{comm=dp,error=rank lost}"])
	require.Equal(t, 1., got["goccl_comm_failures_total{comm=dp,error=timed out}"])
	require.Equal(t, 1., got["goccl_call_errors_total{call=unknown,comm=dp,error=other}"])
	require.Equal(t, 1., got["goccl_call_device_seconds_total{call=unknown,comm=dp}"])
}

// Counting allocates nothing.
func TestAllocations(t *testing.T) {
	onCall := metrics.New().Watch(nil).OnCall
	call := ccl.Observation{Comm: "world", Call: ccl.Call{Kind: ccl.KindAllReduce}, Took: time.Millisecond, Bytes: 1024}
	onCall(call)
	require.Zero(t, testing.AllocsPerRun(1000, func() { onCall(call) }))
}

// Metrics of one process are registered beside others.
func Example() {
	registry := client.NewRegistry()
	m := metrics.New()
	registry.MustRegister(m)
	c, err := ccl.NewComm(context.Background(), boot.Local(1)[0], m.Watch(nil))
	if err != nil {
		fmt.Println(err)
		return
	}
	x := make([]float32, 256)
	err = ccl.AllReduce(context.Background(), c, x, x, ccl.Sum)
	fmt.Println(errors.Join(err, c.Close()))
	families, err := registry.Gather()
	for _, f := range families {
		fmt.Println(f.GetName(), len(f.GetMetric()))
	}
	fmt.Println(err)
	// Output:
	// <nil>
	// goccl_call_bytes_total 1
	// goccl_call_device_seconds_total 1
	// goccl_call_seconds 1
	// <nil>
}

// A Comm's name of any bytes, which a program may have from elsewhere, is counted, and ends no program.
func TestOddNames(t *testing.T) {
	m := metrics.New()
	o := m.Watch(nil)
	o.OnCall(ccl.Observation{Comm: "\xff\n\"}", Err: errors.New("of somebody's")})
	o.OnFailure(&ccl.Error{Code: ccl.ErrRankLost, Comm: "\xff\n\"}"})
	got := gathered(t, m)
	for _, name := range []string{"goccl_call_seconds{call=unknown,comm=%s}", "goccl_call_errors_total{call=unknown,comm=%s,error=other}",
		"goccl_comm_failures_total{comm=%s,error=rank lost}", "goccl_ranks_lost_total{comm=%s}"} {
		require.Equal(t, 1., got[fmt.Sprintf(name, "\uFFFD\n\"}")], "%v", got)
	}
}
