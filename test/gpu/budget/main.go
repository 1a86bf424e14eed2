//go:build nccl && cgo && linux

// Budget shows where the nanoseconds of a queued call go, on one rank of the nccl backend: it times
// the calls that a program makes beside the same call in C and in C through cgo, in turns, in
// stretches of several lengths. What differs between stretches is paid once, what differs between
// rows by each call. For one rank in place NCCL launches nothing, so the rows are the cost to the
// caller alone.
//
//	budget [-stretches 200,20000] [-rounds 41] [-profile FILE]
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

func main() {
	stretches := flag.String("stretches", "200,2000,20000,200000", "calls in a stretch")
	rounds := flag.Int("rounds", 41, "turns of all rows in each length; fewer of the longest")
	profile := flag.String("profile", "", "write a CPU profile of two seconds of the call in place into that file")
	flag.Parse()
	if err := run(os.Stdout, *stretches, *rounds, *profile); err != nil {
		fmt.Fprintln(os.Stderr, "budget:", err)
		os.Exit(1)
	}
}

func run(out io.Writer, stretches string, rounds int, profile string) error {
	var lengths []int
	for _, s := range strings.Split(stretches, ",") {
		n, err := strconv.Atoi(s)
		if err != nil || n < group {
			return fmt.Errorf("-stretches %s: numbers of at least %d", stretches, group)
		}
		lengths = append(lengths, n)
	}
	if rounds < 1 {
		return fmt.Errorf("-rounds %d: at least 1", rounds)
	}
	ctx := context.Background()
	c, err := ccl.NewComm(ctx, boot.Local(1)[0], &ccl.Options{Backend: "nccl"})
	if err != nil {
		return err
	}
	defer c.Close()
	b, err := newBudget(ctx, c)
	if err != nil {
		return err
	}
	defer b.close()
	fmt.Fprintf(out, "# %s, %d cores, GOMAXPROCS %d, %s, clock %s, membarrier %s\n", c.Library(), runtime.NumCPU(),
		runtime.GOMAXPROCS(0), runtime.Version(),
		clocksource(), membarrier())
	for _, n := range lengths {
		rows, err := b.measure(n, min(rounds, max(5, 4_000_000/n)))
		if err != nil {
			return err
		}
		table(out, n, rows)
	}
	if profile == "" {
		return nil
	}
	return b.profile(profile)
}

// table prints the rows of stretches of n calls, in nanoseconds a call, and what each is more than
// the crossing that makes the same call.
func table(out io.Writer, n int, rows []row) {
	cgo := rows[slices.IndexFunc(rows, func(r row) bool { return r.name == alone })].least()
	fmt.Fprintf(out, "\n%d calls in a stretch, %d rounds, ns a call\n%-40s %9s %9s %9s %9s\n", n, len(rows[0].ns), "",
		"first", "least", "median", "over cgo")
	for _, r := range rows {
		fmt.Fprintf(out, "%-40s %9.1f %9.1f %9.1f %+9.1f\n", r.name, r.ns[0], r.least(), r.median(), r.least()-cgo)
	}
}

// profile runs the call in place for two seconds.
func (b *budget) profile(file string) error {
	out, err := os.Create(file)
	if err != nil {
		return err
	}
	defer out.Close()
	if err := pprof.StartCPUProfile(out); err != nil {
		return err
	}
	defer pprof.StopCPUProfile()
	for until := time.Now().Add(2 * time.Second); time.Now().Before(until); {
		b.inPlace(20000)
		if err := b.wait(); err != nil {
			return err
		}
	}
	return nil
}

// clocksource is what the kernel takes the time from: a call into the kernel where it is not the
// processor's counter.
func clocksource() string {
	text, err := os.ReadFile("/sys/devices/system/clocksource/clocksource0/current_clocksource")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}

// membarrier says whether the kernel has the fence that makes a flag of a Comm cost a plain store.
func membarrier() string {
	const private, register = 1 << 3, 1 << 4
	unix.Syscall(unix.SYS_MEMBARRIER, register, 0, 0)
	if _, _, e := unix.Syscall(unix.SYS_MEMBARRIER, private, 0, 0); e != 0 {
		return e.Error()
	}
	return "works"
}
