// Ways makes calls and writes which statements of the module each of them has passed: its tests
// count the functions on the way of a call, and look at each.
//
//	ways blocking DIR   two ranks: an AllReduce of 4 KiB on host memory
//	ways queued DIR     Queue.AllReduce of one rank over NCCL: with the tag nccl
//
// It is built with -cover. Rank 0 prints the plan of a call, and writes what `go tool covdata`
// reads into a folder of DIR for each way that it has seen: what waits, and what the monitor does
// meanwhile, makes some longer.
package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/coverage"
	"strconv"
	"time"

	"github.com/goccl/goccl/ccl"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: ways blocking|queued DIR")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "ways:", err)
		os.Exit(1)
	}
}

func run(way, dir string) error {
	ctx := context.Background()
	switch way {
	case "queued":
		return queued(ctx, dir)
	case "blocking":
		return blocking(ctx, dir)
	}
	return fmt.Errorf("there is no way %q", way)
}

// lateBy is how late a rank comes that another is to wait for: longer than it looks without giving
// way, and not so long that it sleeps.
const lateBy = 100 * time.Microsecond

// blocking makes calls in which rank 1 comes at about the same time, and others in which it comes late.
func blocking(ctx context.Context, dir string) error {
	c, err := ccl.Join(ctx, nil)
	if err != nil {
		return err
	}
	defer c.Close()
	dst, src := make([]float32, 1024), make([]float32, 1024)
	call := func() error { return ccl.AllReduce(ctx, c, dst, src, ccl.Sum) }
	seen := ways{}
	for i := range 200 {
		for range 20 {
			if err := call(); err != nil {
				return err
			}
		}
		for began := time.Now(); c.Rank() == 1 && i%4 == 3 && time.Since(began) < lateBy; {
		}
		if err := seen.pass(call); err != nil {
			return err
		}
	}
	if c.Rank() != 0 {
		return nil
	}
	fmt.Println(c.Plan(ccl.KindAllReduce, ccl.TypeFloat32, ccl.Sum, len(src)))
	return seen.write(dir)
}

// ways are counters of what calls have passed, the first of each length: functions that a call has
// not passed are not in its counters, so that the shortest have the fewest.
type ways map[int][]byte

// pass makes a call, and keeps its counters.
func (w ways) pass(call func() error) error {
	var counters bytes.Buffer
	if err := coverage.ClearCounters(); err != nil {
		return err
	}
	if err := call(); err != nil {
		return err
	}
	if err := coverage.WriteCounters(&counters); err != nil {
		return err
	}
	if n := counters.Len(); w[n] == nil {
		w[n] = counters.Bytes()
	}
	return nil
}

// write writes the counters into folders of dir, with what they count.
func (w ways) write(dir string) error {
	for n, counters := range w {
		dir := filepath.Join(dir, strconv.Itoa(n))
		if err := os.Mkdir(dir, 0o755); err != nil {
			return err
		}
		if err := coverage.WriteMetaDir(dir); err != nil {
			return err
		}
		// covdata finds the counters by the hash in the name of the file beside them.
		meta, err := filepath.Glob(filepath.Join(dir, "covmeta.*"))
		if err != nil || len(meta) != 1 {
			return fmt.Errorf("%d files of meta data in %s: %w", len(meta), dir, err)
		}
		name := fmt.Sprintf("covcounters%s.%d.1", filepath.Ext(meta[0]), os.Getpid())
		if err := os.WriteFile(filepath.Join(dir, name), counters, 0o600); err != nil {
			return err
		}
	}
	return nil
}
