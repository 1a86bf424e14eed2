package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/test/internal/measure"
)

// A point is one collective at one size in one layout, and how long each variant took, an algorithm
// or a way, round by round.
type point struct {
	kind  op.Kind
	l     layout
	bytes int
	us    map[string][]float64
}

// operation is k as package measure spells it.
func operation(k op.Kind) string {
	if k == op.ReduceScatter {
		return "reduce_scatter"
	}
	return k.Flag()
}

// algorithms measures all that can be chosen for each kind, in turn.
func (o *options) algorithms() ([]*point, error) {
	var points []*point
	for _, l := range o.layouts {
		for _, k := range o.kinds {
			names := algo.Names(k)
			// A chain is for calls that ask for the order of ranks, which take nothing else.
			names = slices.DeleteFunc(names, func(name string) bool { return name == "chain" })
			if len(names) < 2 {
				continue
			}
			more, err := o.inTurn(k, l, names, func(name string) string { return "GOCCL_ALGO=" + k.Flag() + "=" + name })
			if err != nil {
				return nil, err
			}
			points = append(points, more...)
		}
	}
	return points, nil
}

// inTurn measures k in each of several variants, which env sets, so many rounds. Every other round
// goes backwards, so that no variant always follows the same one.
func (o *options) inTurn(k op.Kind, l layout, names []string,
	env func(name string) string) (points []*point, err error) {
	at := map[int]*point{}
	for range o.rounds {
		for _, name := range names {
			times, err := o.time(l, operation(k), env(name))
			if err != nil {
				return nil, err
			}
			for key, us := range times {
				if at[key.Bytes] == nil {
					at[key.Bytes] = &point{k, l, key.Bytes, map[string][]float64{}}
				}
				p := at[key.Bytes]
				p.us[name] = append(p.us[name], us)
			}
		}
		slices.Reverse(names)
	}
	for _, size := range slices.Sorted(maps.Keys(at)) {
		points = append(points, at[size])
	}
	return points, nil
}

// time runs one job of this program.
func (o *options) time(l layout, op, env string) (map[measure.Key]float64, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	hosts := l.hosts
	if hosts == 1 {
		hosts = 0 // this machine as it is
	}
	c := measure.Job(self, l.ranks(), hosts, "-op", op, "-min", strconv.Itoa(o.min), "-max", strconv.Itoa(o.max),
		"-factor", strconv.Itoa(o.factor), "-repeats", "1", "-target_ms", strconv.FormatFloat(o.target, 'g', -1, 64))
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	x := exec.CommandContext(ctx, c[0], c[1:]...)
	x.Env = append(os.Environ(), env)
	x.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	x.Stdout, x.Stderr = &stdout, &stderr
	if err := x.Run(); err != nil {
		return nil, fmt.Errorf("%s of %d ranks with %s: %w: %s", op, l.ranks(), env, err, strings.TrimSpace(stderr.String()))
	}
	return measure.Times(stdout.String()), nil
}

// fastest is the algorithm with the least median.
func (p *point) fastest() string {
	best, name := math.Inf(1), ""
	for n, us := range p.us {
		if mid, _, _ := measure.Median(us); mid < best || mid == best && n < name {
			best, name = mid, n
		}
	}
	return name
}

// slower is how many times as long variant a took as b: of the pairs of one round each the median,
// and its 95 % interval.
func (p *point) slower(a, b string) (mid, low, high float64) {
	return measure.Median(measure.Ratios(p.us[a], p.us[b]))
}
