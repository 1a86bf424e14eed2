// Package environ is the registry of goccl's environment variables: the name of each, what it takes,
// its default, who reads it, and what it is for.
//
// No other code of this module has the name of such a variable (test/imports says so). Who reads one
// asks its entry here, for example [Checksum].Get. What an entry cannot read is refused by [Check],
// which boot.Env, ccl.NewComm and bench call before anything else: none of these ignores a wrong value.
// The tables of docs/environment.md are made of this registry.
package environ

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Prefix begins the name of every variable of goccl.
const Prefix = "GOCCL_"

// A Var is what the registry knows of a variable.
type Var struct {
	// Name is the variable's name.
	Name string
	// Takes says which values there are.
	Takes string
	// Default says what holds where the variable is not set.
	Default string
	// By says who reads it.
	By string
	// Help says what it is for.
	Help string
	// Own says that each process has a value of its own, which a launcher sets: it tells nothing of a job.
	Own bool
	// Group is the table that it belongs to.
	Group Group
	// Vital is set where a misspelt name would start another job than was meant, or one without the
	// protection that was asked for: then it is refused, not only warned about.
	Vital bool

	check func(string) error // nil: any value will do
}

// A Group is one of the tables of variables.
type Group string

// The groups.
const (
	Job     Group = "job"     // rank, size and rendezvous
	Secret  Group = "secret"  // the job's secret
	Engine  Group = "engine"  // what a Comm does
	Library Group = "library" // libraries and devices
	Bench   Group = "bench"   // bench and its ranks
	Test    Group = "test"    // tests alone
)

// Set returns NAME=value, as an environment has it.
func (v *Var) Set(value string) string { return v.Name + "=" + value }

// Text returns the variable's value as getenv has it, "" if it is not set.
func (v *Var) Text(getenv func(string) string) string { return getenv(v.Name) }

// Of is os.Getenv for env, a list of NAME=VALUE of which the last one counts.
func Of(env []string) func(name string) string {
	return func(name string) string {
		for _, e := range slices.Backward(env) {
			if value, ok := strings.CutPrefix(e, name+"="); ok {
				return value
			}
		}
		return ""
	}
}

// Value is a variable whose values are read as a T.
type Value[T any] struct {
	Var
	parse func(string) (T, error)
	unset T
}

// From returns the variable's value in an environment. What is empty counts as not set.
func (v *Value[T]) From(getenv func(string) string) (T, error) {
	s := getenv(v.Name)
	if s == "" {
		return v.unset, nil
	}
	t, err := v.parse(s)
	if err != nil {
		return v.unset, v.wrong(s)
	}
	return t, nil
}

// Get returns the variable's value in this process, and its default for one that [Check] refuses.
func (v *Value[T]) Get() T {
	t, _ := v.From(os.Getenv)
	return t
}

// wrong is the error for a value that v does not take.
func (v *Var) wrong(s string) error {
	if v.Group == Secret { // what was set by mistake may be the secret
		return fmt.Errorf("%s: it takes %s", v.Name, v.Takes)
	}
	return fmt.Errorf("%s=%s: it takes %s", v.Name, clip(s), v.Takes)
}

// clip keeps a message a message, whatever a variable holds.
func clip(s string) string {
	if len(s) > 64 {
		s = s[:64] + "..."
	}
	if q := strconv.QuoteToGraphic(s); q != `"`+s+`"` || strings.Contains(s, " ") {
		return q
	}
	return s
}

var errTakes = errors.New("no such value")

// onOff reads the words for on and off.
func onOff(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "1", "true", "yes", "on":
		return true, nil
	case "0", "false", "no", "off":
		return false, nil
	}
	return false, errTakes
}

// whole reads a whole number of at least 0.
func whole(s string) (int, error) {
	n, err := strconv.ParseInt(s, 10, 32)
	if err == nil && n < 0 {
		err = errTakes
	}
	return int(n), err
}

// sockets reads a number of connections.
func sockets(s string) (int, error) {
	const most = 16 // that fit into a header of package links
	n, err := whole(s)
	if err == nil && (n < 1 || n > most) {
		err = errTakes
	}
	return n, err
}

// PortRange is a range of ports; the zero value is none.
type PortRange struct{ From, To int }

// Size is how many ports there are in r.
func (r PortRange) Size() int { return r.To - r.From + 1 }

// Meeting is where rank 0 may be found at a port that nobody has named: r, or where Linux begins to take
// ports for connections, rarely so low.
func (r PortRange) Meeting() PortRange {
	if r == (PortRange{}) {
		return PortRange{32768, 36863}
	}
	return r
}

func (r PortRange) String() string { return fmt.Sprintf("%d-%d", r.From, r.To) }

// address reads the address of a host.
func address(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil || a.IsUnspecified() || a.IsMulticast() {
		return netip.Addr{}, errTakes
	}
	return a.Unmap(), nil
}

// hostPort reads where somebody listens.
func hostPort(s string) (string, error) {
	host, port, err := net.SplitHostPort(s)
	n, notPort := strconv.ParseUint(port, 10, 16)
	if err != nil || notPort != nil || n == 0 || host == "" {
		return "", errTakes
	}
	return s, nil
}

// portRange reads from-to.
func portRange(s string) (r PortRange, err error) {
	from, to, _ := strings.Cut(s, "-")
	a, err := strconv.ParseUint(from, 10, 16)
	b, berr := strconv.ParseUint(to, 10, 16)
	if err != nil || berr != nil || a == 0 || a > b {
		return r, errTakes
	}
	return PortRange{int(a), int(b)}, nil
}

// span reads a duration of Go, or a number of seconds.
func span(s string) (time.Duration, error) {
	const most = 1e9 // seconds: a duration holds nine times as many
	if n, err := strconv.ParseFloat(s, 64); err == nil {
		if !(n >= 0 && n < most) {
			return 0, errTakes
		}
		return time.Duration(n * float64(time.Second)), nil
	}
	d, err := time.ParseDuration(s)
	if err == nil && d < 0 {
		err = errTakes
	}
	return d, err
}

// some is span for what must take time.
func some(s string) (time.Duration, error) {
	d, err := span(s)
	if err == nil && d == 0 {
		err = errTakes
	}
	return d, err
}

// The ways to make an entry of the registry. Each adds it to all.

var all []*Var

func add[T any](v Var, takes string, unset T, parse func(string) (T, error)) *Value[T] {
	if v.Takes == "" {
		v.Takes = takes
	}
	value := &Value[T]{Var: v, parse: parse, unset: unset}
	value.check = func(s string) error {
		_, err := parse(s)
		return err
	}
	all = append(all, &value.Var)
	return value
}

const switchTakes = "1 or 0"

// off is a switch that is off where it is not set, on one that is on.
func off(v Var) *Value[bool] { return add(v, switchTakes, false, onOff) }
func on(v Var) *Value[bool]  { return add(v, switchTakes, true, onOff) }

// asked is a switch for which a third value, "", says that nobody has touched it.
func asked(v Var) *Value[string] {
	return add(v, switchTakes, "", func(s string) (string, error) {
		is, err := onOff(s)
		if is {
			return "1", err
		}
		return "0", err
	})
}

// count is a whole number, -1 where it is not set.
func count(v Var) *Value[int] { return add(v, "a whole number of at least 0", -1, whole) }

// text is any text; where it has a form of its own, whoever reads it says what is wrong with it.
func text(v Var) *Value[string] {
	return add(v, "text", "", func(s string) (string, error) { return s, nil })
}

// choice is one of several words.
func choice(v Var, words ...string) *Value[string] {
	takes := "one of " + strings.Join(words, ", ")
	if len(words) == 2 {
		takes = strings.Join(words, " or ")
	}
	return add(v, takes, "", func(s string) (string, error) {
		if !slices.Contains(words, s) {
			return "", errTakes
		}
		return s, nil
	})
}

// logWords are the values of GOCCL_LOG.
var logWords = []string{"all", "debug", "info", "warn", "error", "quiet"}

// level reads the least level that is logged.
func level(s string) (*slog.Level, error) {
	levels := []slog.Level{slog.LevelDebug, slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError,
		slog.LevelError}
	if i := slices.Index(logWords, s); i >= 0 {
		return &levels[i], nil
	}
	return nil, errTakes
}

// All returns the registry, in the order of its tables.
func All() []*Var { return slices.Clone(all) }

// Known returns the entry with that name, or nil.
func Known(name string) *Var {
	if i := slices.IndexFunc(all, func(v *Var) bool { return v.Name == name }); i >= 0 {
		return all[i]
	}
	return nil
}
