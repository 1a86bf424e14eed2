// Package prometheus makes what a program's Comms do into metrics of Prometheus: calls, bytes,
// durations, failures by kind, and ranks that were lost.
//
//	m := metrics.New()                      // import metrics "github.com/goccl/goccl/interop/prometheus"
//	prometheus.MustRegister(m)              // of github.com/prometheus/client_golang
//	c, err := ccl.Join(ctx, m.Watch(nil))   // or m.Watch(&ccl.Options{...})
//	http.Handle("/metrics", promhttp.Handler())
//
// The Comms that Split and Shrink make of c are watched as well. Each process exports what its own ranks have seen:
//
//	goccl_call_seconds{comm,call}          histogram: durations; its _count is the number of calls
//	goccl_call_bytes_total{comm,call}      bytes sent or received by this rank, whichever are more
//	goccl_call_device_seconds_total{comm,call}  time on the device by its own clock (NCCL, RCCL)
//	goccl_call_errors_total{comm,call,error}    calls that have returned an error
//	goccl_comm_failures_total{comm,error}  Comms that have failed, by the first cause
//	goccl_ranks_lost_total{comm}           failures for which a rank was lost
//
// call is a [ccl.Kind] such as AllReduce, error a [ccl.Code] such as "rank lost", and comm the name
// of the Comm. A program that makes Comms without end gives them names that repeat
// ([ccl.Options].Name), since a metric is kept for each.
package prometheus

import (
	"errors"
	"strings"
	"sync"

	client "github.com/prometheus/client_golang/prometheus"

	"github.com/goccl/goccl/ccl"
)

// Metrics counts what the Comms do that it watches. It is a Collector of
// github.com/prometheus/client_golang, and safe for use by several goroutines.
type Metrics struct {
	seconds  *client.HistogramVec
	bytes    *client.CounterVec
	device   *client.CounterVec
	errors   *client.CounterVec
	failures *client.CounterVec
	lost     *client.CounterVec

	mu    sync.RWMutex
	known map[key]counters
}

// key is what a call is counted under.
type key struct {
	comm string
	kind ccl.Kind
}

// counters are those of a key, found once: a call that is counted allocates nothing.
type counters struct {
	seconds       client.Observer
	bytes, device client.Counter
}

// New returns Metrics that watch nothing yet.
func New() *Metrics {
	counter := func(name, help string, labels ...string) *client.CounterVec {
		return client.NewCounterVec(client.CounterOpts{Namespace: "goccl", Name: name, Help: help}, labels)
	}
	return &Metrics{
		seconds: client.NewHistogramVec(client.HistogramOpts{Namespace: "goccl", Name: "call_seconds",
			Help:    "How long calls took on this rank.",
			Buckets: client.ExponentialBuckets(1e-6, 4, 14)}, []string{"comm", "call"}), // 1 us to 67 s
		bytes: counter("call_bytes_total", "Bytes that this rank has sent or received, whichever are more.", "comm",
			"call"),
		device:   counter("call_device_seconds_total", "Time of calls on the device, by its own clock.", "comm", "call"),
		errors:   counter("call_errors_total", "Calls that have returned an error.", "comm", "call", "error"),
		failures: counter("comm_failures_total", "Comms that have failed, by the first cause.", "comm", "error"),
		lost:     counter("ranks_lost_total", "Failures for which a rank was lost.", "comm"),
		known:    map[key]counters{},
	}
}

// Watch returns a copy of o, whose Comm m watches. nil stands for the defaults. OnCall and
// OnFailure of o are still called, after m has counted.
func (m *Metrics) Watch(o *ccl.Options) *ccl.Options {
	watched := ccl.Options{}
	if o != nil {
		watched = *o
	}
	onCall, onFailure := watched.OnCall, watched.OnFailure
	watched.OnCall = func(call ccl.Observation) {
		m.called(call)
		if onCall != nil {
			onCall(call)
		}
	}
	watched.OnFailure = func(e *ccl.Error) {
		m.failed(e)
		if onFailure != nil {
			onFailure(e)
		}
	}
	return &watched
}

// called counts a call.
func (m *Metrics) called(call ccl.Observation) {
	c := m.of(key{call.Comm, call.Call.Kind})
	c.seconds.Observe(call.Took.Seconds())
	c.bytes.Add(float64(call.Bytes))
	c.device.Add(call.OnDevice.Seconds())
	if call.Err != nil {
		m.errors.WithLabelValues(label(call.Comm), call.Call.Kind.String(), codeOf(call.Err)).Inc()
	}
}

// of finds the counters of a key.
func (m *Metrics) of(k key) counters {
	m.mu.RLock()
	c, has := m.known[k]
	m.mu.RUnlock()
	if has {
		return c
	}
	comm, call := label(k.comm), k.kind.String()
	c = counters{m.seconds.WithLabelValues(comm, call), m.bytes.WithLabelValues(comm, call),
		m.device.WithLabelValues(comm, call)}
	m.mu.Lock()
	m.known[k] = c
	m.mu.Unlock()
	return c
}

// failed counts the failure of a Comm.
func (m *Metrics) failed(e *ccl.Error) {
	comm := label(e.Comm)
	if comm == "" { // of all ranks
		comm = "world"
	}
	m.failures.WithLabelValues(comm, e.Code.Error()).Inc()
	if e.Code == ccl.ErrRankLost {
		m.lost.WithLabelValues(comm).Inc()
	}
}

// label is the name of a Comm as Prometheus takes it, whose package panics at bytes that are no text.
func label(comm string) string { return strings.ToValidUTF8(comm, "\uFFFD") }

// codeOf is the kind of an error.
func codeOf(err error) string {
	var e *ccl.Error
	if errors.As(err, &e) {
		return e.Code.Error()
	}
	return "other"
}

// Describe is that of a Collector.
func (m *Metrics) Describe(to chan<- *client.Desc) {
	for _, c := range m.all() {
		c.Describe(to)
	}
}

// Collect is that of a Collector.
func (m *Metrics) Collect(to chan<- client.Metric) {
	for _, c := range m.all() {
		c.Collect(to)
	}
}

func (m *Metrics) all() []client.Collector {
	return []client.Collector{m.seconds, m.bytes, m.device, m.errors, m.failures, m.lost}
}
