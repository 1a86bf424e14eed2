package ccl

import (
	"math"
	"sync"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/op"
)

// Options.OnCall hears of calls on a device, and of launches of graphs, when the Comm learns that
// their stream has passed them, with the device's own time of calls: two events around what is
// handed over take it. Where there is no OnCall nothing of this file costs anything. A launch has
// no such time: a program launches a graph by package cuda or rocm, and the Comm hears of it
// afterwards.

// awaited is a call on a device that OnCall is to be told of.
type awaited struct {
	record call.Record
	began  time.Time
	bytes  int
	time   *deviceTime // nil where it is not taken
}

// deviceTime is the time that a device takes for a call, or for all of a Group. The stream's mu guards it.
type deviceTime struct {
	span engine.Span // nil once it has been asked
	took time.Duration
}

// known is the time, once the stream has passed the calls; 0 if it is not known.
func (t *deviceTime) known() time.Duration {
	if t == nil {
		return 0
	}
	if t.span != nil {
		t.took, _ = t.span.Took()
		t.span = nil
	}
	return t.took
}

// timed says which span has the calls that are being handed over, which are the last awaited.
func (d *deviceStream) timed(s engine.Span) {
	d.mu.Lock()
	defer d.mu.Unlock()
	t := &deviceTime{span: s}
	handed := d.last()
	for i := len(d.handed.awaited) - 1; i >= 0 && d.handed.awaited[i].record.Seq > handed; i-- {
		d.handed.awaited[i].time = t
	}
}

// captured is a stream whose package says whether it is being captured: what is issued to it then
// runs when the graph is launched.
type captured interface{ Capturing() (bool, error) }

// await notes a call that is about to be handed over, unless it is captured, and reports whether it has.
func (d *deviceStream) await(k *call.Record, bytes int) bool {
	if s, ok := d.s.(captured); ok {
		if yes, err := s.Capturing(); yes || err != nil {
			return false
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.handed.awaited = append(d.handed.awaited, awaited{record: *k, began: time.Now(), bytes: bytes})
	return true
}

// observed takes the awaited calls up to a ticket, and returns what OnCall is told of them. d.mu is held.
func (d *deviceStream) observed(ticket uint64) (told []Observation) {
	n := 0
	for n < len(d.handed.awaited) && d.handed.awaited[n].record.Seq <= ticket {
		n++
	}
	now, end := time.Now(), time.Duration(d.c.eng.Now())
	for i := range d.handed.awaited[:n] {
		a := &d.handed.awaited[i]
		o := Observation{Call: *callOf(&a.record), Comm: d.c.Name(), Took: now.Sub(a.began), OnDevice: a.time.known(),
			Bytes: a.bytes}
		o.Call.State, o.Call.End = Complete, end
		told = append(told, o)
	}
	d.handed.awaited = d.handed.awaited[:copy(d.handed.awaited, d.handed.awaited[n:])]
	return told
}

// teller tells OnCall of what has ended on devices, in order, on a goroutine of its own: who finds
// that a call is over may hold locks.
type teller struct {
	mu    sync.Mutex
	queue []Observation
	busy  bool // the goroutine runs
}

// tell tells OnCall.
func (t *teller) tell(onCall func(Observation), told []Observation) {
	if onCall == nil || len(told) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.queue = append(t.queue, told...)
	if !t.busy {
		t.busy = true
		go t.run(onCall)
	}
}

func (t *teller) run(onCall func(Observation)) {
	over := false
	defer func() {
		if !over { // OnCall has ended this goroutine, with runtime.Goexit
			go t.run(onCall)
		}
	}()
	for {
		t.mu.Lock()
		if over = len(t.queue) == 0; over {
			t.queue, t.busy = nil, false
			t.mu.Unlock()
			return
		}
		o := t.queue[0]
		t.queue = t.queue[1:]
		t.mu.Unlock()
		callBack(onCall, o)
	}
}

// tellFailed tells OnCall of what was under way on devices when c failed, each once.
func tellFailed(c *Comm) {
	if c.watchers.onCall == nil {
		return
	}
	var told []Observation
	for _, d := range c.devices.all() {
		d.mu.Lock()
		told = append(told, d.observed(math.MaxUint64)...)
		d.mu.Unlock()
	}
	told = append(told, c.rec.launches.end(Failed, func(*launch) bool { return true }, c.Name(),
		time.Duration(c.eng.Now()))...)
	for i := range told {
		o := &told[i]
		o.Call.State, o.OnDevice = Failed, 0
		o.Err = failureIn(c, nil, &call.Record{Seq: o.Call.Seq, Count: o.Call.Count, Start: int64(o.Call.Start),
			End: int64(o.Call.End), Root: o.Call.Root - o.Call.Number,
			Kind: op.Kind(o.Call.Kind), Type: op.Type(o.Call.Type), Op: op.Op(o.Call.Op), State: uint8(Failed),
			Times: float32(o.Call.Factor)})
	}
	c.rec.teller.tell(c.watchers.onCall, told)
}
