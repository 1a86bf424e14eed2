// Command first puts bench's first rows to the proof: what a default run says of small sizes, in its first milliseconds,
// is what a run says that takes its time. It runs bench with its defaults and with -time 15ms in turns, and compares the
// medians of each size up to 64 KiB. One default run of the whole curve is timed as well.
//
//	go run ./test/first             15 pairs: each median within 15 % of the other run's, the whole curve within 10 s
//	go run ./test/first -pairs 3    a slice of them
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

const (
	within  = 0.15             // of the medians
	longest = 10 * time.Second // a default run of a curve
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "first:", err)
		os.Exit(1)
	}
}

func run() error {
	pairs := flag.Int("pairs", 15, "so many `PAIRS` of runs")
	program := flag.String("bench", "", "this `FILE` in place of one built here")
	flag.Parse()
	dir, err := os.MkdirTemp("", "goccl-first-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if *program == "" {
		*program = filepath.Join(dir, "bench")
		if out, err := exec.Command("go", "build", "-o", *program, "github.com/goccl/goccl/bench").CombinedOutput(); err != nil {
			return fmt.Errorf("go build: %w\n%s", err, out)
		}
	}
	var quick, long runs
	for range *pairs {
		for _, side := range []struct {
			to   *runs
			args []string
		}{{&quick, nil}, {&long, []string{"-time", "15ms"}}} {
			f, err := bench(*program, dir, append([]string{"-e", "64K"}, side.args...)...)
			if err != nil {
				return err
			}
			*side.to = append(*side.to, f)
		}
	}
	start := time.Now()
	if _, err := bench(*program, dir); err != nil {
		return err
	}
	took := time.Since(start)

	bad := 0
	fmt.Println("    size   default us  15ms us  ratio")
	for _, l := range compare(quick, long) {
		mark := ""
		if !l.good() {
			mark = "  beyond 15 %"
			bad++
		}
		fmt.Printf("%8d %-3s %9.3f %8.3f %6.3f%s\n", l.size, l.half, l.quick, l.long, l.ratio(), mark)
	}
	fmt.Printf("a default run of the curve: %.1f s\n", took.Seconds())
	switch {
	case bad > 0:
		return fmt.Errorf("%d medians differ by more than 15 %%: is the machine quiet?", bad)
	case took > longest:
		return fmt.Errorf("a default run took %v, more than %v", took, longest)
	}
	return nil
}

// bench runs bench once, and reads what it has written.
func bench(program, dir string, args ...string) (*file, error) {
	path := filepath.Join(dir, "out.json")
	cmd := exec.Command(program, append(args, "-op", "allreduce", "-J", path)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%v: %w\n%s", cmd, err, out)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f := new(file)
	if err := json.Unmarshal(b, f); err != nil {
		return nil, err
	}
	if len(f.Results) == 0 {
		return nil, errors.New("bench has measured nothing")
	}
	return f, nil
}
