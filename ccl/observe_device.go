package ccl

import (
	"math"
	"sync"
	"time"

	"github.com/goccl/goccl/ccl/internal/call"
)

// Options.OnCall hears of calls on a device, and of launches of graphs, when the Comm learns that their stream has passed them. Where
// there is no OnCall nothing of this file costs anything.

// awaited is a call on a device that OnCall is to be told of.
type awaited struct {
	record call.Record
	began  time.Time
	bytes  int
}

// captured is a stream whose package says whether it is being captured: what is issued to it then runs when the graph is launched.
type captured interface{ Capturing() (bool, error) }

// await notes a call that is about to be handed over, unless it is captured.
func (d *deviceStream) await(k *call.Record, bytes int) {
	if s, ok := d.s.(captured); ok {
		if yes, err := s.Capturing(); yes || err != nil {
			return
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.handed.awaited = append(d.handed.awaited, awaited{*k, time.Now(), bytes})
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
		o := Observation{Call: *callOf(&a.record), Comm: d.c.Name(), Took: now.Sub(a.began), Bytes: a.bytes}
		o.Call.State, o.Call.End = Complete, end
		told = append(told, o)
	}
	d.handed.awaited = d.handed.awaited[:copy(d.handed.awaited, d.handed.awaited[n:])]
	return told
}

// teller tells OnCall of what has ended on devices, in order, on a goroutine of its own: who finds that a call is over may hold locks.
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
		onCall(o)
	}
}

// tellFailed tells OnCall of what was under way on devices when c failed, each once.
func tellFailed(c *Comm) {
	if c.watchers.onCall == nil || c.lib == nil {
		return
	}
	var told []Observation
	for _, d := range c.devices.all() {
		d.mu.Lock()
		told = append(told, d.observed(math.MaxUint64)...)
		d.mu.Unlock()
	}
	for _, l := range c.rec.launches.failed(time.Duration(c.eng.Now())) {
		told = append(told, Observation{Call: l.call, Comm: c.Name(), Took: time.Since(l.began)})
	}
	for i := range told {
		o := &told[i]
		o.Call.State = Failed
		o.Err = c.failureIn(nil, &call.Record{Seq: o.Call.Seq, Count: o.Call.Count, Start: int64(o.Call.Start), End: int64(o.Call.End), Root: o.Call.Root,
			Kind: call.Kind(o.Call.Kind), Type: uint8(o.Call.Type), Op: uint8(o.Call.Op), State: uint8(Failed), Times: float32(o.Call.Factor)})
	}
	c.rec.teller.tell(c.watchers.onCall, told)
}
