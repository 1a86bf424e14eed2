package option

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccl/goccl/bench/internal/coll"
	"github.com/goccl/goccl/bench/internal/prose"
	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/internal/engine"
)

// into sets to as parse reads it.
func into[T any](to *T, parse func(string) (T, error)) func(string) error {
	return func(s string) (err error) {
		*to, err = parse(s)
		return err
	}
}

// on sets to, unless its flag says false.
func on(to *bool) func(string) error {
	return into(to, func(s string) (bool, error) { return s != "false", nil })
}

func number(to *int, least int) func(string) error {
	return into(to, func(s string) (int, error) { return whole(s, least) })
}

// upTo takes a whole number from least to most; for a larger one, why says what it may be.
func upTo[I ~int | ~uint8](to *I, least, most I, why string) func(string) error {
	return into(to, func(s string) (I, error) {
		n, err := whole(s, int(least))
		if err == nil && n > int(most) {
			err = errors.New(why)
		}
		return I(n), err
	})
}

// ranks takes a number of ranks.
func ranks(to *int) func(string) error {
	return upTo(to, 1, maxRanks, fmt.Sprintf("at most %d ranks are started on one machine", maxRanks))
}

func size(to *int, least int) func(string) error {
	return into(to, func(s string) (int, error) {
		n, err := ParseSize(s)
		if err == nil && n < least {
			err = fmt.Errorf("it must be at least %d", least)
		}
		return n, err
	})
}

// peerTimeout reads what ccl.Options takes, with 0 for never.
func peerTimeout(s string) (time.Duration, error) {
	if s == "0" {
		return -1, nil
	}
	d, err := span(s)
	if err == nil && d < time.Second {
		err = errors.New("a healthy machine can be silent that long: give at least 1s, or 0 for never")
	}
	return d, err
}

var errTime = errors.New("a time is a number and a unit, such as 500us, 2s or 10m")

// span reads a time: 2s, 500us; a number alone is seconds.
func span(s string) (time.Duration, error) {
	d, err := time.ParseDuration(s)
	if seconds, number := strconv.ParseFloat(s, 64); number == nil {
		d, err = time.Duration(seconds*float64(time.Second)), nil
		if math.Abs(seconds) > 1<<30 || math.IsNaN(seconds) {
			return 0, errors.New("it must be less than 30 years")
		}
	}
	switch {
	case err != nil:
		return 0, errTime
	case d <= 0:
		return 0, errors.New("it must be more than 0")
	}
	return d, nil
}

// spanOr0 reads a time, or 0 for none.
func spanOr0(s string) (time.Duration, error) {
	if s == "0" {
		return 0, nil
	}
	return span(s)
}

// spanWithUnit reads a time with its unit alone. The tables have microseconds: a limit of 500 that
// is read as seconds never fails.
func spanWithUnit(s string) (time.Duration, error) {
	if _, number := strconv.ParseFloat(s, 64); number == nil {
		return 0, errors.New("say in which unit: 500us, 2ms")
	}
	return span(s)
}

// bandwidth reads a number of GB/s.
func bandwidth(s string) (float64, error) {
	x, err := strconv.ParseFloat(s, 64)
	if err != nil || !(x > 0) || math.IsInf(x, 0) {
		return 0, errors.New("it must be a number of GB/s, such as 12.5")
	}
	return x, nil
}

// maxAgg is how many calls a group may have: more is a slip of the finger, and a group keeps
// something of each.
const maxAgg = 1 << 16

// register is -R.
func (o *Options) register(s string) error {
	n, err := whole(s, 0)
	if err == nil && n > 2 {
		err = errors.New("it must be 0 (ordinary memory), 1 (registered) or 2 (symmetric windows)")
	}
	o.Registered, o.Windows = n > 0, n == 2
	return err
}

func hints(s string) (ccl.Hints, error) {
	h, err := ccl.ParseHints(s)
	if e := (*ccl.Error)(nil); errors.As(err, &e) {
		return h, e.Err // the parser of flags says which flag it is
	}
	return h, err
}

func root(s string) (int, error) {
	if s == "all" {
		return AllRoots, nil
	}
	n, err := whole(s, 0)
	if err != nil {
		err = errors.New("a root is a rank number of at least 0, or all")
	}
	return n, err
}

// oneOf takes one of some names.
func oneOf(to *string, what string, names []string) func(string) error {
	return into(to, func(s string) (string, error) {
		found, err := list(s, what, names, names, strings.ToLower)
		switch {
		case err != nil:
			return "", err
		case len(found) != 1:
			return "", errors.New("one at a time")
		}
		return found[0], nil
	})
}

// memKinds are the kinds of memory; what is not the host's needs a backend for devices.
var memKinds = []string{"host", "device", "managed"}

// devices reads the numbers of devices.
func devices(s string) (all []int, err error) {
	for _, word := range strings.Split(s, ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n < 0 {
			return nil, fmt.Errorf("%q is not a device number; the first is 0", word)
		}
		all = append(all, n)
	}
	return all, nil
}

// backends takes a backend more than once: what differs then is noise.
func backends(s string) (all []string, err error) {
	for _, word := range strings.Split(s, ",") {
		found, err := list(word, "backend", engine.Names(), engine.Names(), strings.ToLower)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

func collectives(s string) ([]string, error) {
	return list(s, "operation", coll.Names(), coll.Names(), squeeze)
}

func listTypes(s string) ([]ccl.Type, error) {
	return list(s, "type", typeNames(), types(), func(w string) string {
		w = strings.ToLower(w)
		if n, ok := goTypes[w]; ok {
			return n
		}
		return w
	})
}

func listOps(s string) ([]ccl.Op, error) {
	if s == "all" {
		return ops(), nil
	}
	return list(s, "operator", append(opNames(), MulSum.String()), append(ops(), MulSum), strings.ToLower)
}

// list reads a comma list of names, or all, as the values that belong to them.
func list[T comparable](s, what string, names []string, values []T, plain func(string) string) ([]T, error) {
	if s == "all" {
		return values, nil
	}
	var found []T
	for _, word := range strings.Split(s, ",") {
		i := slices.Index(names, plain(word))
		if i < 0 {
			err := errors.New("it must stand alone")
			if word != "all" {
				err = NoSuch(what, plain(word), names)
			}
			if word != s {
				err = fmt.Errorf("%q: %w", word, err)
			}
			return nil, err
		}
		if !slices.Contains(found, values[i]) {
			found = append(found, values[i])
		}
	}
	return found, nil
}

// meant are words that others use for what has another name here.
var meant = map[string]string{
	"gloo": "cpu", "tcp": "cpu", "shm": "cpu",
	"fp8": "f8e4m3", "float8": "f8e4m3", "e4m3": "f8e4m3", "e5m2": "f8e5m2", "int": "int32", "long": "int64",
	"byte": "uint8",
	"add":  "sum", "mean": "avg", "average": "avg", "mul": "prod", "product": "prod",
}

// NoSuch is the error of an unknown name: it suggests the name that was probably meant, and lists all names.
func NoSuch(what, word string, names []string) error {
	near := meant[word]
	for _, b := range engine.Backends() {
		if slices.Contains(b.Aliases, word) {
			near = b.Name
		}
	}
	if !slices.Contains(names, near) {
		near = Nearest(word, names)
	}
	all := strings.Join(names, " ")
	if near != "" {
		return fmt.Errorf("no such %s; did you mean %s? There are %s", what, near, all)
	}
	return fmt.Errorf("no such %s; there are %s", what, all)
}

func types() (ts []ccl.Type) {
	for t := ccl.TypeInt8; t <= ccl.TypeFloat8E5M2; t++ {
		ts = append(ts, t)
	}
	return ts
}

func typeNames() []string { return prose.Names(types(), ccl.Type.String) }

// MulSum stands for the operator that Comm.Scaled makes of Factor: that of each Comm is its own.
const MulSum = ccl.Op(16)

// Factor is what -o mulsum multiplies by: a power of two, which is exact before the sum and after it.
const Factor = 2

// ops are those of -o all. MulSum, which takes floating-point types alone, is not among them.
func ops() []ccl.Op { return []ccl.Op{ccl.Sum, ccl.Prod, ccl.Min, ccl.Max, ccl.Avg} }

func opNames() []string { return prose.Names(ops(), ccl.Op.String) }

// goTypes are Go's names, and others in use, of types that nccl-tests names as C does.
var goTypes = map[string]string{
	"float32": "float", "float64": "double", "float16": "half", "fp16": "half", "bf16": "bfloat16",
	"fp32": "float", "fp64": "double", "float8e4m3": "f8e4m3", "float8e5m2": "f8e5m2",
}
