// Command benchab puts bench ab and bench compare to the proof. In trials of bench ab a program is
// compared with itself, which must find no change, and with one whose calls are made 10 % longer,
// which must find it slower. In those of bench compare runs that were stored are: twins, of which
// it must say nothing, and runs with calls of twice the length.
//
//	go run ./test/benchab                       20 trials of each: 19, 18, 19 and 20 must be right
//	go run ./test/benchab -trials 3 -only same  a slice of them
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// kind is one kind of trial.
type kind struct {
	name     string
	slowdown string // percent
	trial    func(sides [2]string, slowdown string, args []string) (string, error)
	right    []string // the answer must begin with one of these
	wrong    int      // of 20 trials so many may be
}

var kinds = []kind{
	{"same", "0", ab, []string{"no change: ", "cannot tell: "}, 1},
	{"slower", "10", ab, []string{"slower: "}, 2},
	{"twins", "0", stored, []string{"no change; ", "cannot tell; "}, 1},
	{"double", "100", stored, []string{"allreduce up to 4 KiB (cpu): slower: "}, 0},
}

// longest is what one trial may take.
const longest = time.Minute

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "benchab:", err)
		os.Exit(1)
	}
}

func run() error {
	trials := flag.Int("trials", 20, "so many `TRIALS` of each kind")
	only := flag.String("only", "", "only this `KIND`: same, slower, twins or double")
	flag.Parse()
	if *only != "" && !slices.ContainsFunc(kinds, func(k kind) bool { return k.name == *only }) {
		return fmt.Errorf("-only %s: it is same, slower, twins or double", *only)
	}
	dir, err := os.MkdirTemp("", "goccl-ab-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	sides, err := programs(dir)
	if err != nil {
		return err
	}
	bad := 0
	for _, k := range kinds {
		if *only != "" && *only != k.name {
			continue
		}
		right := 0
		for i := range *trials {
			start := time.Now()
			said, err := k.trial(sides, k.slowdown, flag.Args())
			if err != nil {
				return err
			}
			took := time.Since(start)
			ok := took <= longest && slices.ContainsFunc(k.right,
				func(begin string) bool { return strings.HasPrefix(said, begin) })
			if ok {
				right++
			}
			fmt.Printf("%-6s %2d  %-5t %4.1f s  %s\n", k.name, i+1, ok, took.Seconds(), said)
		}
		least := *trials - *trials*k.wrong/20
		fmt.Printf("%s: %d of %d right, at least %d wanted\n", k.name, right, *trials, least)
		if right < least {
			bad++
		}
	}
	if bad > 0 {
		return fmt.Errorf("wrong too often")
	}
	return nil
}

// ab runs bench ab once, with more args (its flags, and after "--" bench's), and returns its last line.
func ab(sides [2]string, slowdown string, args []string) (string, error) {
	own, bench := args, []string(nil)
	if i := slices.Index(args, "--"); i >= 0 {
		own, bench = args[:i], args[i:]
	}
	if slowdown == "0" { // with itself: even a copy lies elsewhere in memory
		sides[1] = sides[0]
	}
	out, err := output(exec.Command(sides[0],
		slices.Concat([]string{"ab", "-env=" + variable + "=" + slowdown}, own, sides[:], bench)...))
	lines := strings.Split(out, "\n")
	return lines[len(lines)-1], err
}

// runs is how many are stored of each side.
const runs = 5

// stored stores runs of both sides in turns, compares them with bench compare, and returns the first verdict.
func stored(sides [2]string, slowdown string, args []string) (string, error) {
	dir, err := os.MkdirTemp("", "goccl-ab-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	for i := range runs {
		for side, program := range sides {
			file := filepath.Join(dir, fmt.Sprintf("%d-%d.json", side, i))
			cmd := exec.Command(program, append([]string{"-e", "1M", "-J", file}, args...)...)
			if side == 1 {
				cmd.Env = append(os.Environ(), variable+"="+slowdown)
			}
			if _, err := output(cmd); err != nil {
				return "", err
			}
		}
	}
	out, err := output(exec.Command(sides[0], "compare", filepath.Join(dir, "0-*.json"), filepath.Join(dir, "1-*.json")))
	for line := range strings.Lines(out) {
		if !strings.HasPrefix(line, "differs: ") { // what differs between the machines
			return strings.TrimSpace(line), err
		}
	}
	return "", err
}

// output runs cmd. That something is slower is no error.
func output(cmd *exec.Cmd) (string, error) {
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 3 {
		return "", fmt.Errorf("%v: %w", cmd, err)
	}
	return strings.TrimSpace(string(out)), nil
}
