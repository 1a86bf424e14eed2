package main

import (
	"fmt"
	"slices"
)

// report prints what has come of a run, and returns what is wrong.
func (d *driver) report() (bad []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	slices.SortStableFunc(d.lines, func(a, b line) int { return a.at.Compare(b.at) })
	hash, differ, rounds, most := map[int]string{}, 0, 0, 0
	var between []float64
	before := map[*peer]line{}
	for _, l := range d.lines {
		if l.what != "round" {
			continue
		}
		rounds++
		most = max(most, l.round+1)
		if hash[l.round] == "" {
			hash[l.round] = l.hash
		} else if hash[l.round] != l.hash {
			differ++
			fmt.Printf("host %d has other bits after round %d, of %d ranks\n", l.host, l.round, l.size)
		}
		if b, ok := before[l.p]; ok && l.round == b.round+1 && l.size == b.size {
			between = append(between, l.at.Sub(b.at).Seconds())
		}
		before[l.p] = l
	}
	fmt.Printf("rounds %d, records %d, with other bits than the first of their round: %d\n", most, rounds, differ)
	if differ > 0 || rounds == 0 {
		bad = append(bad, fmt.Sprintf("%d records of %d have other bits", differ, rounds))
	}
	show("between two rounds of one size", between)
	losses, joins := map[string][]float64{}, map[string][]float64{}
	for i, e := range d.events {
		switch e.what {
		case "kill", "unplug":
			if t, ok := d.loss(e); ok {
				losses[e.what] = append(losses[e.what], t)
			} else {
				bad = append(bad, fmt.Sprintf("no round after event %d, %s of host %d", i, e.what, e.host))
			}
		default:
			if t, ok := d.joined(e); ok {
				joins[e.what] = append(joins[e.what], t)
			} else if !d.lostAfter(i) {
				bad = append(bad, fmt.Sprintf("no round of the peer of event %d, %s of host %d", i, e.what, e.host))
			}
		}
	}
	for _, ended := range d.ended {
		bad = append(bad, "a peer has ended: "+ended)
	}
	limit := func(what string, t []float64, median, worst float64) {
		if show(what, t); d.set.bars && len(t) > 0 && (t[len(t)/2] > median || t[len(t)-1] > worst) {
			bad = append(bad, fmt.Sprintf("%s: more than %.2f s, or at worst %.2f s", what, median, worst))
		}
	}
	silent := d.set.silent.Seconds()
	limit("from a kill to the next round, less local work", losses["kill"], .5, 1.5)
	limit("from an unplugging to the next round, less local work", losses["unplug"], silent+1.5, silent+1.5)
	limit("from a start to the first round", joins["start"], 1.5, 60)
	limit("from plugging in to the first round", joins["plug"], 60, 60)
	return bad
}

// loss is the time from e to the end of the first round of the others without its host, of which local work is left
// out.
func (d *driver) loss(e event) (float64, bool) {
	var before line
	for _, l := range d.lines {
		if l.what == "round" && l.at.Before(e.at) {
			before = l
		}
	}
	for i, l := range d.lines {
		if l.what != "round" || l.p == e.p || !l.at.After(e.at) || l.size >= before.size && l.round < before.round+2 {
			continue
		}
		from := e.at
		for _, w := range d.lines[:i] {
			if w.what == "worked" && w.round == l.round && w.p != e.p && w.at.After(from) {
				from = w.at
			}
		}
		return l.at.Sub(from).Seconds(), true
	}
	return 0, false
}

// joined is the time from e to the end of the first round of its peer.
func (d *driver) joined(e event) (float64, bool) {
	for _, l := range d.lines {
		if l.what == "round" && l.p == e.p && l.at.After(e.at) {
			return l.at.Sub(e.at).Seconds(), true
		}
	}
	return 0, false
}

// lostAfter reports whether the peer of an event has been lost again.
func (d *driver) lostAfter(i int) bool {
	return slices.ContainsFunc(d.events[i+1:], func(e event) bool {
		return e.p == d.events[i].p && (e.what == "kill" || e.what == "unplug")
	})
}

func show(what string, t []float64) {
	slices.Sort(t)
	if len(t) > 0 {
		fmt.Printf("%s: %d, median %.2f s, 90 %% %.2f s, worst %.2f s\n", what, len(t), t[len(t)/2], t[len(t)*9/10], t[len(t)-1])
	}
}
