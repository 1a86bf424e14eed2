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

// A point is one collective at one size in one layout, and how long each algorithm took, round by round.
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
			at := map[int]*point{}
			err := o.inTurn(l.ranks(), l.hosts, operation(k), len(names), func(i int) []string {
				return []string{"GOCCL_ALGO=" + k.Flag() + "=" + names[i]}
			}, func(i, size int, us float64) {
				p := at[size]
				if p == nil {
					p = &point{k, l, size, map[string][]float64{}}
					at[size] = p
				}
				p.us[names[i]] = append(p.us[names[i]], us)
			})
			if err != nil {
				return nil, err
			}
			for _, size := range slices.Sorted(maps.Keys(at)) {
				points = append(points, at[size])
			}
		}
	}
	return points, nil
}

// inTurn runs an operation in each of several variants, so many rounds, and hands out the times of each run. Every
// other round goes backwards, so that no variant always follows the same one.
func (o *options) inTurn(ranks, hosts int, op string, variants int, env func(i int) []string, got func(i, size int, us float64)) error {
	for round := range o.rounds {
		for j := range variants {
			i := j
			if round%2 == 1 {
				i = variants - 1 - j
			}
			times, err := o.time(ranks, hosts, op, env(i))
			if err != nil {
				return err
			}
			for k, us := range times {
				got(i, k.Bytes, us)
			}
		}
	}
	return nil
}

// time runs one job of this program.
func (o *options) time(ranks, hosts int, op string, env []string) (map[measure.Key]float64, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := measure.Job(self, ranks, hosts, "-op", op, "-min", strconv.Itoa(o.min), "-max", strconv.Itoa(o.max),
		"-factor", strconv.Itoa(o.factor), "-repeats", "1", "-target_ms", strconv.FormatFloat(o.target, 'g', -1, 64))
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	x := exec.CommandContext(ctx, c[0], c[1:]...)
	x.Env = append(os.Environ(), env...)
	x.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	x.Stdout, x.Stderr = &stdout, &stderr
	if err := x.Run(); err != nil {
		return nil, fmt.Errorf("%s of %d ranks with %s: %w: %s", op, ranks, strings.Join(env, " "), err, strings.TrimSpace(stderr.String()))
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

// slower is how many times as long algorithm a took as b: of the pairs of one round each the median, and the lower
// end of its 95 % interval.
func (p *point) slower(a, b string) (mid, low float64) {
	mid, low, _ = measure.Median(measure.Ratios(p.us[a], p.us[b]))
	return mid, low
}
