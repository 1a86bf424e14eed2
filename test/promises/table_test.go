//go:build linux

package promises

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

var write = flag.Bool("write", false, "measure with care, and write the table of docs/measured/promises.md")

// times is how often a measurement is made: often where the table is written.
func times(n, often int) int {
	if *write {
		return often
	}
	return n
}

// row is a line of the table: a promise, what was measured, and the tests that show it.
type row struct {
	number                             int
	name, what, promise, result, tests string
}

var rows = struct {
	sync.Mutex
	list []row
}{}

// record notes a result. Rows of one promise stand in the order in which they were recorded.
func record(t *testing.T, number int, name, what, promise, format string, args ...any) {
	t.Helper()
	test, _, _ := strings.Cut(t.Name(), "/")
	r := row{number, name, what, promise, fmt.Sprintf(format, args...), test}
	t.Logf("%s: %s: promised %s, measured %s", r.name, r.what, r.promise, r.result)
	rows.Lock()
	defer rows.Unlock()
	rows.list = append(rows.list, r)
}

// asserted fails at ten times a promise.
func asserted(t *testing.T, what string, got, promise time.Duration) {
	t.Helper()
	if got > 10*promise {
		t.Errorf("%s: %v, more than ten times the %v promised", what, got, promise)
	}
}

const (
	document   = "../../docs/measured/promises.md"
	failures   = "../../docs/reliability.md" // how failures are found
	tableBegin = "<!-- make promises writes what follows -->"
	tableEnd   = "<!-- up to here -->"
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if *write && code == 0 && !isRank() {
		if err := writeTable(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// elsewhere are the promises that other tests hold the project to.
var elsewhere = []row{
	{3, "R3", "a rank is late: it is named", "in the log at GOCCL_STALL_WARN, in the error at Timeout", "",
		"TestR3LateRankIsNamed TestR3TimeoutNamesTheMissingRank TestR3WaiterIsNotNamed TestR3WaiterOfAnotherHostIsNotNamed"},
	{4, "R4", "calls that differ in kind, type, operator, count, root, order", "ErrMismatch with both calls on all ranks", "",
		"TestR4MismatchIsToldToAll TestR4CallLeftOut TestR4RanksWaitForDifferentPeers"},
	{6, "R6", "random faults; many Comms in trouble", "0 hangs, 0 wrong results, 0 leaks", "`make chaos`", "TestR6RandomFaults TestR6Corners"},
	{8, "R8", "a connection without the job's secret", "ErrUnauthorized", "",
		"TestR8OrderOfSecrets TestR8SecretFileOfOthersIsRefused TestR8SecretIsLeftInAFile"},
	{9, "R9", "1,000 silent strangers", "delay of less than 1s", "", "TestR9StrangersDoNotDelayBootstrap"},
	{13, "R13", "a long run", "memory within 1 MiB, every result right", "`make soak`", "TestR13NothingGrows"},
}

func writeTable() error {
	text, err := os.ReadFile(document)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), tableBegin)
	_, after, ok2 := strings.Cut(rest, tableEnd)
	if !ok || !ok2 {
		return fmt.Errorf("%s: there is no table between %q and %q", document, tableBegin, tableEnd)
	}
	rows.list = append(rows.list, elsewhere...)
	slices.SortStableFunc(rows.list, func(a, b row) int { return a.number - b.number })
	var table strings.Builder
	table.WriteString("\n\n| | what | promised | measured | shown by |\n|---|---|---|---|---|\n")
	for _, r := range rows.list {
		fmt.Fprintf(&table, "| %s | %s | %s | %s | `%s` |\n", r.name, r.what, r.promise, r.result, strings.ReplaceAll(r.tests, " ", "` `"))
	}
	table.WriteString("\n")
	// By way of another file: what goes wrong must not leave half a document.
	if err := os.WriteFile(document+".new", []byte(before+tableBegin+table.String()+tableEnd+after), 0o644); err != nil {
		return err
	}
	return os.Rename(document+".new", document)
}

// spread is the middle and the largest of some times.
func spread(d []time.Duration) (middle, largest time.Duration) {
	if len(d) == 0 {
		return 0, 0
	}
	d = slices.Sorted(slices.Values(d))
	return d[len(d)/2], d[len(d)-1]
}

// round is d with three digits or so.
func round(d time.Duration) time.Duration {
	switch {
	case d > time.Second:
		return d.Round(10 * time.Millisecond)
	case d > time.Millisecond:
		return d.Round(10 * time.Microsecond)
	}
	return d.Round(10 * time.Nanosecond)
}
