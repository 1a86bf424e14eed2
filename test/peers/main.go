// Command peers measures goccl's CPU engine beside Open MPI, MPICH and Gloo, where they are installed, and its engine
// mpi beside C: in interleaved rounds of one run, by the same definitions of time and size, with the same data. What
// counts are the ratios of the times, ours over the best peer's, their median and its 95 % interval.
//
//	go run ./test/peers -list
//	go run ./test/peers -case allreduce-2 -rounds 15
//	go run ./test/peers -write docs/performance.md
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccl/goccl/test/internal/measure"
)

func main() {
	done, err := measure.Main()
	switch {
	case done:
	case len(os.Args) > 1 && os.Args[1] == "beside":
		err = beside(os.Args[2:])
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
	write := flag.String("write", "", "write the table into this file, in place of the last one")
	list := flag.Bool("list", false, "list the cases")
	largest := flag.Int("max", 0, "leave out sizes above this")
	flag.Parse()
	if flag.NArg() > 0 || *rounds < 1 {
		flag.Usage()
		return fmt.Errorf("what is meant by %q and %d rounds?", flag.Args(), *rounds)
	}
	if *list {
		for _, c := range cases {
			fmt.Printf("%-22s %s\n", c.name, c.what)
		}
		return nil
	}
	var chosen []testCase
	for _, c := range cases {
		if *only == "" || containsWord(*only, c.name) {
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
	var out strings.Builder
	for i := range chosen {
		if chosen[i].ours.command(b, chosen[i].ranks) == nil {
			fmt.Fprintf(os.Stderr, "peers: %s left out: what it needs is missing\n", chosen[i].name)
			continue
		}
		r, err := b.measure(&chosen[i], *rounds, *target)
		if err != nil {
			return fmt.Errorf("%s: %w", chosen[i].name, err)
		}
		text := r.table()
		fmt.Print(text)
		out.WriteString(text)
	}
	fmt.Printf("%d rounds, %v\n", *rounds, time.Since(began).Round(time.Second))
	if *write != "" {
		return writeTable(*write, machine()+out.String(), *rounds)
	}
	return nil
}

func containsWord(list, word string) bool {
	for _, w := range strings.Split(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// The table lies between these two lines of its file.
const (
	tableBegins = "<!-- measured: begin -->"
	tableEnds   = "<!-- measured: end -->"
)

func writeTable(path, table string, rounds int) error {
	old, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(old), tableBegins)
	_, after, ok2 := strings.Cut(rest, tableEnds)
	if !ok || !ok2 {
		return fmt.Errorf("%s has no lines %q and %q", filepath.Base(path), tableBegins, tableEnds)
	}
	text := fmt.Sprintf("%s%s\n\n%d interleaved rounds, %s.\n\n```\n%s```\n\n%s%s", before, tableBegins, rounds, time.Now().Format("2 January 2006"), table, tableEnds, after)
	return os.WriteFile(path, []byte(text), 0o644)
}
