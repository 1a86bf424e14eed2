// Command peers measures goccl's CPU engine beside Open MPI, MPICH and Gloo, where they are installed, and its engine
// mpi beside C: in interleaved rounds of one run, by the same definitions of time and size, with the same data. What
// counts are the ratios of the times, ours over the best peer's, their median and its 95 % interval.
//
//	go run ./test/peers -list
//	go run ./test/peers -case allreduce-2 -rounds 15
//	go run ./test/peers -write docs/measured
//	go run ./test/peers -write docs/measured -continue
package main

import (
	"flag"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/goccl/goccl/test/internal/measure"
)

func main() {
	done, err := measure.Main()
	switch {
	case done:
	case len(os.Args) > 2 && os.Args[1] == "loop":
		err = loop(os.Args[2:])
	case len(os.Args) > 1 && os.Args[1] == "kernel":
		err = kernel(os.Args[2:])
	default:
		err = run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		os.Exit(1)
	}
}

func run() error {
	only := flag.String("case", "", "comma-separated names of cases; empty: all")
	rounds := flag.Int("rounds", 15, "how often everything is measured in turn")
	target := flag.Float64("target_ms", 10, "milliseconds of a loop")
	write := flag.String("write", "", "keep each case's table, as it ends, on the page of this CPU's maker in this directory")
	further := flag.Bool("continue", false,
		"with -write: leave out cases that the page has, of this commit and as many rounds")
	list := flag.Bool("list", false, "list the cases")
	largest := flag.Int("max", 0, "leave out sizes above this")
	flag.Parse()
	if flag.NArg() > 0 || *rounds < 1 {
		flag.Usage()
		return fmt.Errorf("what is meant by %q and %d rounds?", flag.Args(), *rounds)
	}
	if *list {
		for _, c := range cases {
			fmt.Printf("%-22s %s; bars: %s\n", c.name, c.what, c.barred())
		}
		return nil
	}
	var chosen []testCase
	for _, c := range cases {
		if *only == "" || slices.Contains(strings.Split(*only, ","), c.name) {
			if *largest > 0 {
				c.max = min(c.max, *largest)
			}
			if c.min <= c.max {
				chosen = append(chosen, c)
			}
		}
	}
	if len(chosen) == 0 {
		return fmt.Errorf("there is no case %q; -list lists them", *only)
	}
	dir, err := os.MkdirTemp("", "goccl-peers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	b, err := build(dir)
	if err != nil {
		return err
	}
	began := time.Now()
	var kept *page
	var at string
	if *write != "" {
		if kept, err = openPage(*write); err == nil {
			at, err = commit()
		}
		if err != nil {
			return err
		}
	}
	for i := range chosen {
		if *further && kept != nil && kept.has(chosen[i].name, *rounds, at) {
			continue
		}
		if n := runtime.NumCPU(); n < chosen[i].cores {
			fmt.Fprintf(os.Stderr, "peers: %s left out: it takes %d cores, and %d are here\n", chosen[i].name, chosen[i].cores,
				n)
			continue
		}
		if !b.has(chosen[i].ours) {
			fmt.Fprintf(os.Stderr, "peers: %s left out: what it needs is missing\n", chosen[i].name)
			continue
		}
		r, err := b.measure(&chosen[i], *rounds, *target)
		if err != nil {
			return fmt.Errorf("%s: %w", chosen[i].name, err)
		}
		text := r.table()
		fmt.Print(text)
		if kept == nil {
			continue
		}
		if err := kept.keep(chosen[i].name, text, *rounds, at); err != nil {
			return err
		}
	}
	fmt.Printf("%d rounds, %v\n", *rounds, time.Since(began).Round(time.Second))
	return nil
}
