// Report shows what `go test -json` prints as go test itself would: a line per package, and all
// that a failed test wrote. It adds the list of skipped tests, since a suite that was skipped is
// no suite that passed.
//
//	go test -json ./... | go run ./test/report
//
// The exit status is 1 if a test failed, if there was no test at all, or if GOCCL_REQUIRE is "all"
// and a test was skipped for another reason than the hardware. Such a skip says so at its start:
// t.Skip("hardware: no AVX-512"). With -short, what go test -short skips for no other reason is allowed too:
// t.Skip("-short: thousands of ranks"); test-long runs it.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

func main() {
	short := flag.Bool("short", false, "the tests ran with -short")
	flag.Parse()
	r := reporter{out: os.Stdout, logs: map[test]*strings.Builder{}, short: *short}
	if err := r.read(os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, "report:", err)
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

type test struct{ pkg, name string }

type reporter struct {
	out     io.Writer
	logs    map[test]*strings.Builder // of the tests that run now
	passed  int
	later   int // skipped for -short
	failed  int
	skipped []string
	waived  []string // skipped for want of hardware
	short   bool     // a skip for -short is none
}

func (r *reporter) read(in io.Reader) error {
	lines := bufio.NewReader(in)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) == nil {
				r.event(e)
			} else {
				r.out.Write(line) // not from test2json: pass it on
			}
		}
		if err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
	}
}

func (r *reporter) event(e event) {
	id := test{e.Package, e.Test}
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
			if id.pkg == e.Package {
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
	if r.short && strings.HasPrefix(reason, "-short") {
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
	if r.short {
		later = fmt.Sprintf(", %d for -short", r.later)
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
