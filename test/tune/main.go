// Command tune measures the thresholds of the CPU engine on this machine: each algorithm, as GOCCL_ALGO forces it,
// and each way to the data of one host, in interleaved rounds over sizes. It prints which was the fastest where, and
// the table of internal/algo, and the sizes of tuning.go, with the thresholds that fit the measurements.
//
//	go run ./test/tune
//	go run ./test/tune -layouts 4x1 -kinds allreduce -rounds 11
package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccl/goccl/internal/algo"
	"github.com/goccl/goccl/internal/op"
	"github.com/goccl/goccl/test/internal/measure"
)

func main() {
	done, err := measure.Main()
	if !done {
		var o *options
		if o, err = parse(os.Args[1:]); err == nil {
			err = o.run()
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "tune:", err)
		os.Exit(1)
	}
}

// A layout is so many hosts with so many ranks each, all simulated on this machine.
type layout struct{ hosts, each int }

func (l layout) String() string { return fmt.Sprintf("%dx%d", l.hosts, l.each) }

func (l layout) ranks() int { return l.hosts * l.each }

func (l layout) topology() algo.Topology { return algo.Blocks(l.hosts, l.each) }

// options are what is measured, and for how long.
type options struct {
	layouts          []layout
	kinds            []op.Kind
	ways             bool
	min, max, factor int
	rounds           int
	target           float64
}

// kinds are those of which there is more than one algorithm to choose from.
var kinds = []op.Kind{op.AllReduce, op.Broadcast, op.Reduce, op.ReduceScatter, op.AllGather, op.Gather, op.Scatter,
	op.AllToAll, op.Barrier}

func parse(args []string) (*options, error) {
	o := &options{}
	fs := flag.NewFlagSet("tune", flag.ContinueOnError)
	layouts := fs.String("layouts", "2x1,3x1,4x1,2x2", "hosts x ranks on each, comma-separated")
	only := fs.String("kinds", "", "comma-separated collectives; empty: all")
	fs.BoolVar(&o.ways, "ways", true, "the ways of one host as well")
	fs.IntVar(&o.min, "min", 256, "smallest size, the vector's bytes")
	fs.IntVar(&o.max, "max", 4<<20, "largest size")
	fs.IntVar(&o.factor, "factor", 4, "between sizes")
	fs.IntVar(&o.rounds, "rounds", 7, "how often everything is measured in turn; fewer than 6 tell little")
	fs.Float64Var(&o.target, "target_ms", 3, "milliseconds of a loop")
	if err := fs.Parse(args); err != nil {
		return nil, err
	}
	if fs.NArg() > 0 || o.rounds < 1 || o.min < 1 || o.max < o.min || o.factor < 2 {
		fs.Usage()
		return nil, fmt.Errorf("what is meant by %q, %d rounds and sizes from %d to %d by %d?", fs.Args(), o.rounds, o.min,
			o.max, o.factor)
	}
	for text := range strings.SplitSeq(*layouts, ",") {
		if text == "" {
			continue
		}
		hosts, each, ok := strings.Cut(text, "x")
		h, err1 := strconv.Atoi(hosts)
		e, err2 := strconv.Atoi(each)
		if !ok || err1 != nil || err2 != nil || h < 2 || e < 1 {
			return nil, fmt.Errorf("%q is no layout: two hosts or more, x, ranks on each, such as 4x1", text)
		}
		o.layouts = append(o.layouts, layout{h, e})
	}
	for _, k := range kinds {
		if *only == "" || slices.Contains(strings.Split(*only, ","), k.Flag()) {
			o.kinds = append(o.kinds, k)
		}
	}
	if len(o.kinds) == 0 {
		return nil, fmt.Errorf("there is no collective %q; there are %v", *only, kinds)
	}
	return o, nil
}

func (o *options) run() error {
	began := time.Now()
	points, err := o.algorithms()
	if err != nil {
		return err
	}
	printPoints(os.Stdout, points)
	if len(points) > 0 {
		printTables(os.Stdout, algo.Defaults(), fit(points, algo.Defaults()))
	}
	if o.ways {
		if err := o.waysOfOneHost(os.Stdout); err != nil {
			return err
		}
	}
	fmt.Printf("%d rounds, %v\n", o.rounds, time.Since(began).Round(time.Second))
	return nil
}
