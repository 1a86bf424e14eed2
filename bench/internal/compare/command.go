package compare

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/prose"
	"github.com/goccl/goccl/bench/internal/report"
)

const storedUsage = `bench compare says what has changed between stored runs, which -J has written. A run is
one sample, however many iterations it has: give several of each side.

  bench compare [flags] OLD[,OLD...] NEW[,NEW...]

`

const storedEnd = `
Exit status: 0 good, 1 failed, 2 bad usage, 3 slower by more than -threshold; with -strict
4 where the runs cannot tell.
`

// Stored is bench compare; differences says what differs between two fingerprints.
func Stored(args []string, stdout, stderr io.Writer, differences func(old, new map[string]string) []string) int {
	sub := option.NewSub("compare", storedUsage, storedEnd, stdout, stderr)
	threshold := 5.0
	sub.Percent(&threshold, "threshold", "tolerate slowdowns of up to this many percent (5)")
	strict := sub.Bool("strict", strictHelp)
	to := sub.String("html", "FILE", "", "also write the comparison as a page to FILE")
	if goOn, status := sub.Parse(args); !goOn {
		return status
	}
	if *to != "" {
		if err := report.Writable("html", *to); err != nil {
			return sub.Complain(option.BadUsage, err)
		}
	}
	if *to == option.Stdout { // which has the page alone
		stdout = stderr
	}
	switch n := len(sub.Operands); {
	case n < 2:
		return sub.Complain(option.BadUsage,
			errors.New("it compares two sides, old and new: bench compare old.json new.json"))
	case n > 2: // most often a shell's doing
		return sub.Complain(option.BadUsage,
			fmt.Errorf("%d files are given: join those of a side by commas, or quote their pattern: bench compare 'old*.json' 'new*.json'", n))
	}
	var sides [2]side
	seen := runs{}
	for i, names := range sub.Operands {
		files, err := seen.load(names, i, stderr)
		switch {
		case errors.Is(err, errBothSides):
			return sub.Complain(option.BadUsage, err)
		case err != nil:
			return sub.Complain(option.BadUsage, err)
		}
		sides[i] = newSide(files)
	}
	differs := differences(sides[0].files[0].Fingerprint, sides[1].files[0].Fingerprint)
	var said bytes.Buffer
	both := io.MultiWriter(stdout, &said)
	for _, d := range differences(settings(&sides[0].files[0].Config), settings(&sides[1].files[0].Config)) {
		fmt.Fprintln(both, "differs:", d)
	}
	for i, s := range sides {
		for k, f := range s.files {
			if f.Busy != "" {
				fmt.Fprintf(both, "%s, run %d: %s\n", sub.Operands[i], k+1, f.Busy)
			}
		}
	}
	outcome, err := write(both, sides[0], sides[1], threshold/100, differs)
	if err == nil {
		all := lines(sides[0], sides[1], threshold/100)
		if table(stdout, all); *to != "" {
			err = new(report.File).Save("html", *to, html(said.String(), sub.Operands[0], sub.Operands[1], all))
		}
	}
	if err != nil {
		return sub.Complain(option.Failed, err)
	}
	return outcome.status(*strict)
}

const strictHelp = "exit with 4 where nothing is slower but something may be: it cannot be told"

// runs are those that have been read, by their contents: a run is one sample, under however many names.
type runs map[[sha256.Size]byte]given

// given is where a run was.
type given struct {
	path string
	side int
}

var errBothSides = errors.New("a run is either old or new; leave one of them out")

// load reads the files of a side: a comma list of names or patterns.
func (seen runs) load(names string, side int, stderr io.Writer) (files []*report.File, err error) {
	for _, pattern := range strings.Split(names, ",") {
		paths, err := filepath.Glob(pattern)
		if err != nil || len(paths) == 0 {
			paths = []string{pattern}
		}
		for _, path := range paths {
			f, sum, err := report.Load(path)
			if err != nil {
				return nil, err
			}
			switch first, again := seen[sum]; {
			case again && first.side != side:
				return nil, fmt.Errorf("%s and %s are the same run, on both sides: %w", first.path, path, errBothSides)
			case again:
				fmt.Fprintf(stderr, "bench compare: %s and %s are the same run: it counts once\n", first.path, path)
				continue
			}
			seen[sum] = given{path, side}
			if len(f.Results) == 0 {
				return nil, fmt.Errorf("%s has no results", path)
			}
			if n := f.OutOfBounds.Count; n > 0 {
				return nil, fmt.Errorf("%s has %s: what is wrong may be fast", path, prose.Count(int(n), "wrong value"))
			}
			files = append(files, f)
		}
	}
	return files, nil
}

const abUsage = `bench ab runs two builds of bench, or this one with two sets of flags or environments, in
turns, and says which is faster.

  bench ab [flags] OLD NEW [-- FLAGS OF BOTH]

OLD and NEW are each a program, or "flags" in quotes that this program gets; - is this
program as it is. Without FLAGS: ` + abFlags + `

`

const abFlags = "-op allreduce -b 8 -e 1M -f 8 -c 0 -time 10ms"

const abEnd = `
Exit status: 0 good, 1 failed, 2 bad usage, 3 slower by more than -threshold; with -strict
4 where it cannot be told.
`

// AB is bench ab. It calls begins when there will be processes to end.
func AB(ctx context.Context, begins func(), args []string, stdout, stderr io.Writer) int {
	var env []string
	sub := option.NewSub("ab", abUsage, abEnd, stdout, stderr)
	sub.Further = "bench ab OLD NEW --"
	rounds, budget := 80, defaultBudget
	sub.Count(&rounds, "rounds", "at most N rounds; each runs both (80)", 1, 10000)
	sub.Time(&budget, "budget", "start no round after this time (50s)")
	threshold := 5.0
	sub.Percent(&threshold, "threshold", "tolerate slowdowns of up to this many percent (5)")
	strict := sub.Bool("strict", strictHelp)
	sub.Func("env", "NAME=VALUE", "set a variable for NEW, NAME=VALUE; may be repeated; with it, OLD and NEW may be left out", func(s string) error {
		if !strings.Contains(s, "=") {
			return errors.New("it must be NAME=VALUE")
		}
		env = append(env, s)
		return nil
	})
	if goOn, status := sub.Parse(args); !goOn {
		return status
	}
	operands, flags := sub.Operands, sub.After
	switch {
	case len(operands) == 0 && len(env) > 0:
		operands = []string{"-", "-"}
	case len(operands) != 2:
		return sub.Complain(option.BadUsage,
			errors.New(`it compares two programs: bench ab ./bench-old ./bench-new, or bench ab "-m 1" "-m 4"`))
	case rounds < leastRounds:
		return sub.Complain(option.BadUsage, fmt.Errorf("-rounds %d: at least %d are needed", rounds, leastRounds))
	}
	if len(flags) == 0 {
		flags = strings.Fields(abFlags)
	}
	var programs [2]*program
	for i, o := range operands {
		p, err := newProgram(o, flags)
		if err != nil {
			return sub.Complain(option.BadUsage, err)
		}
		if i == 1 {
			p.env = env
		}
		programs[i] = p
	}
	t := newTrial(rounds, budget, threshold/100, programs)
	t.tell = func(round int, log float64) { fmt.Fprintf(stdout, "# round %d: time %s\n", round, percent(log)) }
	begins()
	r, err := t.run(ctx)
	if err != nil {
		status := option.Failed
		if side := (*exec.ExitError)(nil); errors.As(err, &side) && side.ExitCode() == option.BadUsage {
			status = option.BadUsage // which a side has refused
		}
		return sub.Complain(status, err)
	}
	fmt.Fprintln(stdout, r)
	return r.outcome().status(*strict)
}
