// Skipreport shows what `go test -json` prints as go test itself would: a line per package, and all
// that a failed test wrote. It adds the list of skipped tests, since a suite that was skipped is
// no suite that passed.
//
//	go test -json ./... | go run ./test/skipreport
//	skipreport <(go test -json ./a) <(go test -json ./b) # at the same time
//
// With -packages N, where nothing is printed for 10 seconds, it says how many of the N are left. With -readme FILE it
// writes what README says of the tests, how many and how long, from this run.
//
// The exit status is 1 if a test failed, if there was no test at all, or if GOCCL_REQUIRE is "all"
// and a test was skipped for another reason than the hardware. Such a skip says so at its start:
// t.Skip("hardware: no AVX-512"). With -short, what go test -short skips for no other reason is
// allowed too: t.Skip("-short: thousands of ranks"); test-long runs it. With -race, a reason that
// names the race detector is allowed.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"
)

func main() {
	r := reporter{out: os.Stdout, logs: map[test]*strings.Builder{}}
	flag.BoolVar(&r.short, "short", false, "the tests ran with -short")
	flag.BoolVar(&r.race, "race", false, "the tests ran with -race")
	flag.IntVar(&r.left, "packages", 0, "how many packages there are to test")
	readme := flag.String("readme", "", "a file in which to write how many tests there were, and how long they took")
	flag.Parse()
	begin := time.Now()
	reminder := time.NewTicker(10 * time.Second)
	go func() {
		for range reminder.C {
			r.remind()
		}
	}()
	err := r.readAll(flag.Args())
	reminder.Stop()
	if err == nil && !r.verdict(os.Getenv("GOCCL_REQUIRE") == "all") {
		os.Exit(1)
	}
	if err == nil && *readme != "" {
		err = rewrite(*readme, r.sum(), time.Since(begin), runtime.NumCPU())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "skipreport:", err)
		os.Exit(1)
	}
}

// remind says how far the tests are, if they say nothing themselves.
func (r *reporter) remind() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.left > 0 && !r.said {
		fmt.Fprintf(r.out, "%s left, %d tests passed\n", packages(r.left), r.passed)
	}
	r.said = false
}

func packages(n int) string {
	if n == 1 {
		return "1 package"
	}
	return fmt.Sprintf("%d packages", n)
}

// What README says of a run of all tests.
var (
	sumLine  = regexp.MustCompile(`(?m)^    \d+ tests passed, .*$`)
	duration = regexp.MustCompile(`\bIt takes \d+ minutes? on \d+ cores?`)
)

// rewrite has a file say what a run has shown.
func rewrite(name, sum string, took time.Duration, cores int) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	if len(sumLine.FindAll(text, -1)) != 1 || len(duration.FindAll(text, -1)) != 1 {
		return fmt.Errorf("%s: it has not one line as %q and one sentence as %q", name, "    9 tests passed, 0 failed",
			"It takes 9 minutes on 2 cores")
	}
	text = sumLine.ReplaceAllLiteral(text, []byte("    "+sum))
	minutes := max(int(math.Ceil(took.Minutes())), 2)
	text = duration.ReplaceAllLiteral(text, fmt.Appendf(nil, "It takes %d minutes on %d cores", minutes, cores))
	return os.WriteFile(name, text, 0o666)
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
	left    int                       // packages that have not ended; 0 where nobody has said how many there are
	said    bool                      // something was printed since the last reminder
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
	if e.Test == "" && (e.Action == "pass" || e.Action == "fail" || e.Action == "skip") {
		r.left = max(r.left-1, 0)
	}
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
			r.said = true
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

// sum is the last line.
func (r *reporter) sum() string {
	later := ""
	if r.short || r.race {
		later = fmt.Sprintf(", %d for -short or -race", r.later)
	}
	return fmt.Sprintf("%d tests passed, %d failed, %d skipped, %d for want of hardware%s", r.passed, r.failed,
		len(r.skipped), len(r.waived), later)
}

// verdict prints the sum and reports whether all is well.
func (r *reporter) verdict(requireAll bool) bool {
	for _, line := range append(r.skipped, r.waived...) {
		fmt.Fprintln(r.out, "skipped:", line)
	}
	fmt.Fprintln(r.out, r.sum())
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
