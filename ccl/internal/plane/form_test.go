package plane

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl/internal/machine"
	"github.com/goccl/goccl/ccl/internal/tuning"
	"github.com/goccl/goccl/internal/cores"
)

// coresOf are sockets of so many cores, of which `share` in a row have one cache, with so many threads each.
func coresOf(sockets, each, share, threads int) []cores.Processor {
	var all []cores.Processor
	for cpu := range sockets * each * threads {
		c := cpu % (sockets * each)
		all = append(all, cores.Processor{CPU: cpu, Core: c, Cache: c / share * share, Node: c / each * each, Socket: c / each * each})
	}
	return all
}

// Ranks are taken to be in order on the cores, and on the threads only where they outnumber the cores.
func TestPlacesOf(t *testing.T) {
	h := PrivateHost()
	at := placesOf(104, coresOf(2, 52, 52, 2), h)
	require.Len(t, at, 104)
	require.Equal(t, []tuning.Place{{Group: 0}, {Group: 0}, {Group: 1, Socket: 52}, {Group: 1, Socket: 52}}, []tuning.Place{at[0], at[51], at[52], at[103]})
	at = placesOf(12, coresOf(2, 52, 52, 2), h)
	require.Equal(t, []tuning.Place{{Group: 0}, {Group: 1, Socket: 52}}, []tuning.Place{at[5], at[6]})
	at = placesOf(16, coresOf(1, 8, 8, 2), h)
	require.Len(t, at, 16)
	at = placesOf(16, coresOf(1, 16, 4, 1), h)
	require.Equal(t, []tuning.Place{{Group: 0}, {Group: 1}, {Group: 3}}, []tuning.Place{at[3], at[4], at[15]})
	require.Equal(t, make([]tuning.Place, 12), placesOf(12, nil, h), "nothing is known")
}

// Of the processors only those count that the ranks may use.
func TestPlacesAllowed(t *testing.T) {
	h, err := sharedHost()
	if err != nil {
		t.Skip("hardware: no memory to share here: " + err.Error())
	}
	defer h.Close()
	all := coresOf(1, 64, 1, 1)
	groups := map[tuning.Place]bool{}
	for _, p := range placesOf(64, all, h) {
		groups[p] = true
	}
	usable := 0
	for _, p := range all {
		if h.Allows(p.CPU) {
			usable++
		}
	}
	require.NotZero(t, usable)
	require.Len(t, groups, usable)
	require.False(t, h.Allows(1<<20))
}

// All ranks take the form that the first has decided on, whatever they would take themselves.
func TestAgreeOnForm(t *testing.T) {
	before, cpu := processors, machine.CPU.Lines
	defer func() { processors, machine.CPU.Lines = before, cpu }()
	machine.CPU.Lines = tuning.Lines{Same: 50, Other: 100, Socket: 200, Next: 10, Share: 20}
	processors = func() []cores.Processor { return coresOf(2, 52, 52, 1) }
	const n = 104
	all := ranks(t, n, Options{})
	all[0].Local.Forms().Store(0)
	for _, c := range all {
		own := *all[0].Local // of the same memory
		c.Local, c.Spins = &own, spinsAlone
		c.Local.Form = tuning.Flat
	}
	all[7].agreeOnForm()
	want := all[7].Local.Form
	require.Greater(t, want.Group, 1)
	require.Equal(t, tuning.ChooseForm(placesOf(n, processors(), all[7].Host), machine.CPU.Lines), want)
	processors = func() []cores.Processor { return nil }
	all[8].Spins = SpinsCrowded
	for _, c := range all {
		c.agreeOnForm()
		require.Equal(t, want, c.Local.Form)
	}
	require.Equal(t, tuning.Crowded, all[8].chooseForm(0), "ranks outnumber processors")
	require.Equal(t, tuning.Form{Group: 3, Tree: true, Most: all[0].Local.Inline / 3}, all[0].chooseForm(1003), "what a test wants")
	require.Equal(t, tuning.Flat, all[0].chooseForm(1))

	few := ranks(t, tuning.GroupedFrom-1, Options{})
	for _, spins := range []int{spinsAlone, SpinsCrowded} {
		few[0].Spins = spins
		few[0].Local.Forms().Store(0)
		few[0].agreeOnForm()
		require.Equal(t, spins == SpinsCrowded, few[0].Local.Form.Crowded)
		require.Zero(t, few[0].Local.Form.Group, "few ranks go in no groups")
	}

	two := ranks(t, 2, Options{})
	two[0].Local.Forms().Store(0)
	two[0].agreeOnForm()
	require.Equal(t, tuning.Flat, two[0].Local.Form)
	require.Zero(t, two[0].Local.Forms().Load(), "two ranks need not agree")
}
