package option

import (
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccl/goccl/bench/internal/prose"
)

// The exit statuses of bench and its sub-commands.
const (
	Good     = 0
	Failed   = 1
	BadUsage = 2
	Missed   = 3 // a limit: -min-busbw, -max-p99, or -threshold of ab and compare
	Unclear  = 4 // -strict of ab and compare: the runs cannot tell
)

// Sub is the command line of a sub-command.
type Sub struct {
	Operands []string // arguments without a flag, in their order among the flags
	After    []string // what follows "--"

	// Stray, if there is one, says what is wrong with arguments that begin with an operand.
	Stray func(rest []string) error

	// Further, if there is one, is a command line that ends where flags of the benchmark may follow.
	Further string

	name           string
	flags          []flag
	about, end     string
	stdout, stderr io.Writer
}

// NewSub makes the command line of "bench name". Its help is about, the flags, and end.
func NewSub(name, about, end string, stdout, stderr io.Writer) *Sub {
	return &Sub{name: name, about: about, end: end, stdout: stdout, stderr: stderr}
}

// Parse reads args: flags and operands in any order, up to "--". It is false if the command is over with that: help was
// asked for, or something makes no sense, and Parse has said what; then status is the exit status.
func (s *Sub) Parse(args []string) (goOn bool, status int) {
	err := s.parse(args)
	switch {
	case errors.Is(err, errHelp):
		fmt.Fprintf(s.stdout, "%s\n\n%s\n", strings.TrimSpace(s.about), strings.Trim(s.usage()+"\n"+s.end, "\n"))
		return false, Good
	case err != nil:
		return false, s.Complain(BadUsage, err)
	}
	return true, Good
}

// Complain says what is wrong, in one line, and returns the status.
func (s *Sub) Complain(status int, err error) int {
	fmt.Fprintf(s.stderr, "bench %s: %v\n", s.name, err)
	return status
}

// Func adds a flag that set reads; takes is what its value is called, "" for a flag that takes none.
func (s *Sub) Func(name, takes, help string, set func(string) error) {
	s.flags = append(s.flags, flag{name: name, value: takes, help: help, set: set})
}

// Bool adds a flag that takes no value.
func (s *Sub) Bool(name, help string) *bool {
	to := new(bool)
	s.Func(name, "", help, on(to))
	return to
}

// String adds a flag that is any text.
func (s *Sub) String(name, takes, unset, help string) *string {
	s.Func(name, takes, help, into(&unset, func(value string) (string, error) { return value, nil }))
	return &unset
}

// Job adds the flags that say how ranks are to be started.
func (s *Sub) Job(j *Job) {
	own := jobFlags(j)
	// there is no table
	find(own, "q").help = "print no line of its own that is no error, such as how the ranks are started"
	s.flags = append(s.flags, own...)
}

// Ranks adds -np, as the ways to start ranks have it; given says whether it was there.
func (s *Sub) Ranks(to *int, given *bool) {
	s.Func("np", "N", "ranks (on this machine: the cores, at least 2, at most 8)",
		into(to, func(value string) (int, error) {
			*given = true
			return count(value, 1, MaxProcesses)
		}))
}

// NoOperands is a [Sub.Stray] for a command that takes flags alone.
func NoOperands(rest []string) error {
	return fmt.Errorf("%s: an argument without a flag (-h lists the flags)", rest[0])
}

// Count adds a flag that is a whole number from least to most.
func (s *Sub) Count(to *int, name, help string, least, most int) {
	s.Func(name, "N", help, into(to, func(value string) (int, error) { return count(value, least, most) }))
}

// count reads a whole number from least to most.
func count(value string, least, most int) (n int, err error) {
	if n, err = whole(value, least); err != nil || n > most {
		err = fmt.Errorf("it must be a whole number from %d to %d", least, most)
	}
	return n, err
}

// Time adds a flag that is a time: 2s, 500us; a number alone is seconds.
func (s *Sub) Time(to *time.Duration, name, help string) { s.Func(name, "TIME", help, into(to, span)) }

// Percent adds a flag that is so many percent, from 0 on.
func (s *Sub) Percent(to *float64, name, help string) {
	s.Func(name, "PERCENT", help, into(to, func(value string) (x float64, err error) {
		if x, err = strconv.ParseFloat(value, 64); err != nil || !(x >= 0) || math.IsInf(x, 0) {
			err = errors.New("it must be a percentage, such as 5")
		}
		return x, err
	}))
}

// errHelp says that help was asked for.
var errHelp = errors.New("help")

func (s *Sub) parse(args []string) (err error) {
	if i := slices.Index(args, "--"); i >= 0 {
		args, s.After = args[:i], args[i+1:]
	}
	slices.SortFunc(s.flags, func(a, b flag) int { return strings.Compare(a.name, b.name) })
	for len(args) > 0 {
		arg := args[0]
		name, value, glued := cut(arg)
		f := find(s.flags, name)
		switch {
		case !strings.HasPrefix(arg, "-") || arg == "-" || strings.Contains(name, " "): // "-m 4" in quotes
			if s.Stray != nil {
				return s.Stray(args)
			}
			s.Operands, args = append(s.Operands, arg), args[1:]
			continue
		case name == "h" || name == "help":
			return errHelp
		case f == nil && s.Further != "" && find(flags(new(Options)), name) != nil:
			return fmt.Errorf("%s: a flag of the benchmark comes after --: %s %s", arg, s.Further, strings.Join(args, " "))
		case f == nil:
			return unknown("-", name, "flag", flagNames(s.flags), "-h lists them")
		}
		if args, err = f.read(arg, value, glued, args[1:]); err != nil {
			return err
		}
	}
	return nil
}

// usage is the flags as the help has them.
func (s *Sub) usage() string {
	var b strings.Builder
	for _, f := range s.flags {
		lines := prose.Wrap(f.help, 74)
		fmt.Fprintf(&b, "  %-18s %s\n", strings.TrimSpace("-"+f.name+" "+f.value),
			strings.Join(lines, "\n"+strings.Repeat(" ", 21)))
	}
	return b.String()
}
