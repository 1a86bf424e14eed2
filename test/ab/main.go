// Command ab puts bench ab to the proof: trials in which a program is compared with itself, which must find no change,
// and trials in which one side has its calls made 10 % longer, which must find it slower.
//
//	go run ./test/ab                       20 trials of each: 19 and 18 must be right
//	go run ./test/ab -trials 3 -only same  a slice of them
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// kind is one kind of trial.
type kind struct {
	name, verdict string
	wrong         int // of 20 trials so many may be
}

var kinds = []kind{{"same", "no change", 1}, {"slower", "slower", 2}}

// longest is what one trial may take.
const longest = time.Minute

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "ab:", err)
		os.Exit(1)
	}
}

func run() error {
	trials := flag.Int("trials", 20, "so many `TRIALS` of each kind")
	only := flag.String("only", "", "only this `KIND`: same or slower")
	percent := flag.Float64("slowdown", 10, "make the calls of one side longer by `PERCENT`")
	flag.Parse()
	if *percent < 0 || *percent >= 100 {
		return fmt.Errorf("-slowdown %g: it is from 0 to less than 100", *percent)
	}
	args := flag.Args() // of bench ab: its flags, and after -- bench's
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
			with := []string{"ab"}
			if k.name == "slower" {
				with = append(with, fmt.Sprintf("-env=%s=%g", variable, *percent))
			}
			start := time.Now()
			said, err := trial(sides, append(with, args...))
			took := time.Since(start)
			if err != nil {
				return err
			}
			ok := strings.HasPrefix(said, k.verdict+":") && took <= longest
			if ok {
				right++
			}
			fmt.Printf("%-6s %2d  %-5t %4.1f s  %s\n", k.name, i+1, ok, took.Seconds(), said)
		}
		allowed := *trials * k.wrong / 20
		fmt.Printf("%s: %d of %d right, at least %d wanted\n", k.name, right, *trials, *trials-allowed)
		if right < *trials-allowed {
			bad++
		}
	}
	if bad > 0 {
		return fmt.Errorf("ab was wrong too often")
	}
	return nil
}

// trial runs bench ab once and returns its last line.
func trial(sides [2]string, args []string) (string, error) {
	at := len(args)
	for i, a := range args {
		if a == "--" {
			at = i
			break
		}
	}
	args = append(append(append([]string{}, args[:at]...), sides[0], sides[1]), args[at:]...)
	cmd := exec.Command(sides[0], args...)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil && cmd.ProcessState.ExitCode() != 3 { // 3: slower, as may be
		return "", fmt.Errorf("%v: %w", cmd, err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return lines[len(lines)-1], nil
}
