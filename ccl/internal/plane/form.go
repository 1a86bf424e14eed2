package plane

import (
	"sync"

	inject "github.com/goccl/goccl/ccl/internal/fault"
	"github.com/goccl/goccl/ccl/internal/machine"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/cores"
)

// agreeOnForm has the ranks of this host, more than two, agree on the form of this Comm's calls. The first rank that comes here
// decides for all: the form is part of the message pattern, so nothing that differs between ranks may choose it.
func (c *Member) agreeOnForm() {
	forced := inject.From("cpu.form")
	if c.N <= 2 && forced == 0 {
		return
	}
	w := c.Local.Forms()
	if w.Load() == 0 {
		w.CompareAndSwap(0, c.chooseForm(int(forced)).Word())
	}
	c.Local.Form = tuning.FormOf(w.Load())
}

// chooseForm is what this rank takes for the best form. forced is for tests: so many ranks to a group, and 1000 more for a tree.
func (c *state) chooseForm(forced int) tuning.Form {
	if m := forced % 1000; m > 1 && m < c.N {
		return tuning.Form{Group: m, Tree: forced >= 1000, Most: c.Local.Inline / m}
	}
	if c.Spins == SpinsCrowded { // each further step is a turn of the scheduler
		return tuning.Crowded
	}
	if forced > 0 || c.N < tuning.GroupedFrom {
		return tuning.Flat
	}
	return tuning.ChooseForm(placesOf(c.N, processors(), c.Host), machine.CPU.Lines)
}

// processors are those of this machine. It is a variable for tests.
var processors = sync.OnceValue(func() []cores.Processor { return cores.Read(cores.System) })

// placesOf is where the cores of n ranks are, if the ranks run in order on the processors that the host's processes may use,
// as launchers bind them. Where that is wrong, calls are slower than they could be, and no less right.
func placesOf(n int, all []cores.Processor, h *shm.Host) []tuning.Place {
	var usable []cores.Processor
	for _, p := range all {
		if h.Allows(p.CPU) {
			usable = append(usable, p)
		}
	}
	if usable == nil { // goroutine ranks, which say nothing of processors
		usable = all
	}
	if first := cores.FirstThreads(usable); len(first) >= n {
		usable = first
	}
	at := make([]tuning.Place, n)
	if len(usable) == 0 {
		return at // all in one group
	}
	type shared struct{ cache, node int }
	groups := map[shared]int{}
	for r := range at {
		p := usable[r*len(usable)/n]
		key := shared{p.Cache, p.Node}
		if _, ok := groups[key]; !ok {
			groups[key] = len(groups)
		}
		at[r] = tuning.Place{Group: groups[key], Socket: p.Socket}
	}
	return at
}
