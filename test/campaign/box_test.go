package campaign

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccl/goccl/ccl/ccltest/simnet"
)

// A box is a job in one process, in virtual time, over a network in memory: all of it follows from its seed.
type box struct {
	plan
	link  simnet.Link
	birth birth
	fault fault
	lag   lag
}

// A fault is what befalls the hosts of a box.
type fault struct {
	kind     string
	host     int           // that it befalls
	other    int           // at the other end
	nth      int           // of the connections between them
	also     int           // a host that ends after the first, -1: none
	after    time.Duration // by so much
	at, last time.Duration // since the job has begun
}

// Faults that fail no call come first.
var faultKinds = []string{"none", "blink", "flicker", "pauseall", "reset", "stop", "kill", "silent", "cut", "oneway", "alone", "leave", "noroute", "forget"}

// mild reports whether no call may fail.
func (f *fault) mild() bool { return slices.Index(faultKinds, f.kind) < 4 || f.kind == "forget" }

// struck reports whether the fault befalls host h, so that its ranks may be named.
func (f *fault) struck(h int) bool {
	switch f.kind {
	case "stop", "kill", "silent", "alone", "leave":
		return h == f.host || h == f.also
	case "reset", "cut", "oneway", "noroute":
		return h == f.host || h == f.other
	}
	return false
}

// Limits of a box.
const (
	boxTimeout = 4 * time.Second
	boxSilence = 2 * time.Second
	boxBound   = boxTimeout + 2*boxSilence + 12*time.Second // of one step
	boxMost    = 20 * time.Minute                           // of the whole
)

// newBox is the box of that name: a seed, and which steps are kept.
func newBox(name string) (*box, error) {
	parts := strings.Split(name, "/keep=")
	seed, err := strconv.ParseUint(parts[0], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%q is no job: it is a seed, or a seed and steps, as 7/keep=1,3", name)
	}
	rnd := rand.New(rand.NewPCG(seed, 0x626f78))
	b := &box{plan: plan{name: name, seed: seed, ranks: 2 + rnd.IntN(4), bytes: 1 << 14}}
	if b.ranks > 2 {
		b.spares = rnd.IntN(2)
	}
	all := b.ranks + b.spares
	per := 1 + rnd.IntN(2)*rnd.IntN(2)
	if all/per < 2 {
		per = 1
	}
	for r := range all {
		b.host = append(b.host, r/per)
	}
	b.process = b.host
	hosts := slices.Max(b.host) + 1
	b.link = simnet.Link{Delay: []time.Duration{20, 200, 5000}[rnd.IntN(3)] * time.Microsecond, Rate: []float64{0, 1e9, 2e7}[rnd.IntN(3)]}
	b.link.Jitter = b.link.Delay / 2
	if rnd.IntN(4) == 0 {
		b.link.Loss = 0.001
	}
	f := &b.fault
	f.kind = faultKinds[rnd.IntN(len(faultKinds)-3)] // widen makes the last three
	f.also = -1
	f.at = time.Duration(rnd.IntN(1_500_000)) * time.Microsecond
	f.host = rnd.IntN(hosts)
	f.other = (f.host + 1 + rnd.IntN(hosts-1)) % hosts
	f.nth = rnd.IntN(50)
	f.last = time.Duration(100+rnd.IntN(1000)) * time.Millisecond
	switch f.kind {
	case "stop", "cut", "oneway", "alone", "pauseall":
		f.last = time.Duration(5+rnd.IntN(4)) * time.Second
	}
	b.far = b.link.Delay > time.Millisecond || f.kind != "none"
	for i := range 10 + rnd.IntN(10) {
		k := kind(rnd.IntN(int(failing)))
		if f.mild() && rnd.IntN(4) == 0 {
			k = failing
		}
		b.steps = append(b.steps, step{number: i, kind: k})
	}
	b.crowd()
	b.bear()
	b.widen()
	if len(parts) > 1 {
		kept := strings.Split(parts[len(parts)-1], ",")
		b.name = parts[0] + "/keep=" + parts[len(parts)-1]
		b.steps = slices.DeleteFunc(b.steps, func(s step) bool { return !slices.Contains(kept, strconv.Itoa(s.number)) })
	}
	return b, nil
}

func (b *box) String() string {
	f := b.fault
	return fmt.Sprintf("%v; %v; %v apart, %g bytes a second, loss %g, grid %v; %s of host %d (other %d, connection %d) at %v for %v, and of host %d %v later",
		&b.plan, &b.birth, b.link.Delay, b.link.Rate, b.link.Loss, b.link.Grid, f.kind, f.host, f.other, f.nth, f.at, f.last, f.also, f.after)
}

// befall is what happens to the hosts.
func (b *box) befall(ctx context.Context, n *simnet.Net, j *job) {
	f := &b.fault
	if f.kind == "noroute" {
		return
	}
	wait := func(d time.Duration) {
		select {
		case <-time.After(d):
		case <-ctx.Done():
		}
	}
	if b.birth.when != kindCount && f.kind != "pauseall" {
		select {
		case <-j.began:
		case <-ctx.Done():
		}
	}
	wait(f.at)
	h := n.Host(f.host)
	switch f.kind {
	case "blink", "stop":
		h.Stop()
		time.Sleep(f.last)
		h.Go()
	case "pauseall":
		for i := range n.Size() {
			n.Host(i).Stop()
		}
		time.Sleep(f.last)
		for i := range n.Size() {
			n.Host(i).Go()
		}
	case "flicker", "cut", "oneway":
		n.Cut(f.host, f.other, true)
		n.Cut(f.other, f.host, f.kind != "oneway")
		time.Sleep(f.last)
		n.Cut(f.host, f.other, false)
		n.Cut(f.other, f.host, false)
	case "alone":
		n.CutOff(f.host, true)
		time.Sleep(f.last)
		n.CutOff(f.host, false)
	case "leave":
		close(j.leave)
	case "forget":
		h.Forget(true)
		time.Sleep(f.last)
		h.Forget(false)
	case "kill", "silent":
		h.Kill(f.kind == "silent")
		if f.also >= 0 {
			time.Sleep(f.after)
			n.Host(f.also).Kill(f.kind == "silent")
		}
	case "reset":
		n.Reset(f.host, f.other, f.nth)
	}
}
