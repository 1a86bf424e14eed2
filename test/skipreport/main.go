// Skipreport shows what `go test -json` prints as go test itself would: a line per package, and all
// that a failed test wrote. It adds the list of skipped tests, since a suite that was skipped is
// no suite that passed.
//
//	go test -json ./... | go run ./test/skipreport
//	skipreport <(go test -json ./a) <(go test -json ./b) # at the same time
//
// The exit status is 1 if a test failed, if there was no test at all, or if GOCCL_REQUIRE is "all"
// and a test was skipped for another reason than the hardware. Such a skip says so at its start:
// t.Skip("hardware: no AVX-512"). With -short, what go test -short skips for no other reason is allowed too:
// t.Skip("-short: thousands of ranks"); test-long runs it. With -race, a reason that names the race detector is allowed.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
)

func main() {
	r := reporter{out: os.Stdout, logs: map[test]*strings.Builder{}}
	flag.BoolVar(&r.short, "short", false, "the tests ran with -short")
	flag.BoolVar(&r.race, "race", false, "the tests ran with -race")
	flag.Parse()
	if err := r.readAll(flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "skipreport:", err)
		os.Exit(1)
	}
	if !r.verdict(os.Getenv("GOCCL_REQUIRE") == "all") {
		os.Exit(1)
	}
}

// event is a line of `go test -json`: see `go doc test2json`.
type event struct {
	Action  string
	Package string
	Test    string
	Output  string
}

type test struct {
	in        int // which input: two may have tests of one package
	pkg, name string
}

type reporter struct {
	mu      sync.Mutex // guards what follows
	out     io.Writer
	logs    map[test]*strings.Builder // of the tests that run now
	passed  int
	later   int // skipped for -short or -race
	failed  int
	skipped []string
	waived  []string // skipped for want of hardware
	short   bool     // a skip for -short is none
	race    bool     // nor is one that the race detector needs
}

// readAll reads the files with these names at the same time, or the standard input if there are none.
func (r *reporter) readAll(names []string) error {
	if len(names) == 0 {
		return r.read(0, os.Stdin)
	}
	errs := make([]error, len(names))
	var wg sync.WaitGroup
	for i, name := range names {
		wg.Go(func() {
			f, err := os.Open(name)
			if err == nil {
				defer f.Close()
				err = r.read(i, f)
			}
			errs[i] = err
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// read reads an input to its end.
func (r *reporter) read(number int, in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			r.line(number, line)
		}
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// line takes in a line of an input.
func (r *reporter) line(number int, line []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var e event
	if json.Unmarshal(line, &e) == nil {
		r.event(number, e)
	} else {
		r.out.Write(line) // not from test2json: pass it on
	}
}

func (r *reporter) event(number int, e event) {
	id := test{number, e.Package, e.Test}
	switch {
	case e.Action == "output" && e.Test != "":
		if strings.HasPrefix(e.Output, "=== ") { // RUN, PAUSE, CONT, NAME: -json implies -v
			return
		}
		if r.logs[id] == nil {
			r.logs[id] = new(strings.Builder)
		}
		r.logs[id].WriteString(e.Output)
	case e.Action == "output" || e.Action == "build-output":
		if e.Output != "PASS\n" { // of -v as well
			io.WriteString(r.out, e.Output)
		}
	case e.Action == "fail" && e.Test == "":
		r.failed++
		// A test that the end of its process cut off has no verdict of its own.
		for id := range r.logs {
			if id.in == number && id.pkg == e.Package {
				r.flush(id)
			}
		}
	case e.Action == "fail":
		r.failed++
		r.flush(id)
	case e.Action == "build-fail":
		r.failed++
	case e.Action == "pass" && e.Test != "":
		r.passed++
		delete(r.logs, id)
	case e.Action == "skip" && e.Test != "":
		r.skip(id)
	}
}

func (r *reporter) flush(id test) {
	if log := r.logs[id]; log != nil {
		io.WriteString(r.out, log.String())
		delete(r.logs, id)
	}
}

// skip keeps the reason, which stands in the test's log as "    file_test.go:12: reason".
func (r *reporter) skip(id test) {
	reason := "no reason given"
	if log := r.logs[id]; log != nil {
		for line := range strings.Lines(log.String()) {
			if _, text, ok := strings.Cut(line, "_test.go:"); ok {
				if _, text, ok = strings.Cut(text, ": "); ok {
					reason = strings.TrimSpace(text)
				}
			}
		}
		delete(r.logs, id)
	}
	line := fmt.Sprintf("%s %s: %s", id.pkg, id.name, reason)
	if r.short && strings.HasPrefix(reason, "-short") || r.race && strings.Contains(reason, "the race detector") {
		r.later++
	} else if strings.HasPrefix(reason, "hardware:") {
		r.waived = append(r.waived, line)
	} else {
		r.skipped = append(r.skipped, line)
	}
}

// verdict prints the sum and reports whether all is well.
func (r *reporter) verdict(requireAll bool) bool {
	for _, line := range append(r.skipped, r.waived...) {
		fmt.Fprintln(r.out, "skipped:", line)
	}
	later := ""
	if r.short || r.race {
		later = fmt.Sprintf(", %d for -short or -race", r.later)
	}
	fmt.Fprintf(r.out, "%d tests passed, %d failed, %d skipped, %d for want of hardware%s\n",
		r.passed, r.failed, len(r.skipped), len(r.waived), later)
	switch {
	case r.failed > 0:
		return false
	case r.passed == 0:
		fmt.Fprintln(r.out, "FAIL: there was no test")
		return false
	case requireAll && len(r.skipped) > 0:
		fmt.Fprintln(r.out, "FAIL: GOCCL_REQUIRE=all allows no skipped test")
		return false
	}
	return true
}
