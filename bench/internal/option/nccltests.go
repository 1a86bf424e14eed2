package option

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/bench/internal/prose"
	"github.com/goccl/goccl/ccl"
)

// program is one of nccl-tests, and the collective that it measures.
type program struct{ name, collective string }

// programs are those that bench goes by.
var programs = []program{
	{"all_reduce_perf", "allreduce"},
	{"all_gather_perf", "allgather"},
	{"broadcast_perf", "broadcast"},
	{"reduce_perf", "reduce"},
	{"reduce_scatter_perf", "reducescatter"},
	{"alltoall_perf", "alltoall"},
	{"alltoallv_perf", "alltoallv"},
	{"gather_perf", "gather"},
	{"scatter_perf", "scatter"},
	{"sendrecv_perf", "sendrecv"},
}

// Program reports whether argv0 is one of nccl-tests' programs, and what it is called: its file's
// name. A suffix such as _mpi, which nccl-tests' builds may add, makes no difference. The error is
// for a program of theirs that bench is not.
func Program(argv0 string) (name string, theirs bool, err error) {
	name = strings.TrimSuffix(filepath.Base(argv0), ".exe")
	switch _, found := Collective(name); {
	case found:
		return name, true, nil
	case strings.HasSuffix(name, "_perf") || strings.Contains(name, "_perf_"):
		names := prose.Names(programs, func(p program) string { return p.name })
		return name, true, fmt.Errorf("%s: bench is no program of that name; by a link it is %s", name,
			strings.Join(names, " "))
	}
	return name, false, nil
}

// ProgramOf is the program of nccl-tests that measures a collective, "" if there is none.
func ProgramOf(collective string) string {
	for _, p := range programs {
		if p.collective == collective {
			return p.name
		}
	}
	return ""
}

// Collective is what a program of nccl-tests measures.
func Collective(name string) (collective string, found bool) {
	for _, p := range programs {
		if suffix, ok := strings.CutPrefix(name, p.name); ok && (suffix == "" || suffix[0] == '_') {
			return p.collective, true
		}
	}
	return "", false
}

// alias is an option of nccl-tests 2.19. It sets the flag of bench with the same letter, unless set is there.
type alias struct {
	letter, long string
	set          func(s string) error
}

// aliases are all options of nccl-tests that take a value, which each but help does. They set o.
func aliases(o *Options) []alias {
	return []alias{
		{"t", "nthreads", nil},
		{"g", "ngpus", ranks(&o.PerThread)},
		{"b", "minbytes", nil},
		{"e", "maxbytes", nil},
		{"i", "stepbytes", size(&o.Step, 0)},
		{"f", "stepfactor", number(&o.Factor, 0)},
		{"n", "iters", nil},
		{"m", "agg_iters", nil},
		{"w", "warmup_iters", nil},
		{"N", "run_cycles", nil},
		{"p", "parallel_init", only("bench's ranks always start at the same time", "0", "1")},
		{"c", "check", nil},
		{"o", "op", nil},
		{"d", "datatype", into(&o.Types, theirTypes)},
		{"r", "root", nil},
		{"z", "blocking", nil},
		{"y", "stream_null", only("calls always use a stream of their own, never the null stream", "0")},
		{"T", "timeout", nil},
		{"G", "cudagraph", nil},
		{"C", "report_cputime", only("bench times whole calls, never the issuing alone", "0")},
		{"S", "report_timestamps", flip(&o.Stamp)},
		{"J", "output_file", nil},
		{"a", "average", nil},
		{"R", "local_register", nil},
		{"x", "cta_policy", upTo(&o.Hints.CTAPolicy, 0, ccl.CTAPolicyZero,
			"it must be 0 (default), 1 (efficiency) or 2 (zero)")},
		{"D", "device_implementation", only("no engine calls from inside a kernel", "0")},
		{"V", "device_cta_count", number(new(int), 1)}, // for -D alone
		{"M", "memory", flip(&o.Memory)},
		{"M", "memory_report", flip(&o.Memory)},
		{"u", "unalign", nil},
		{"I", "per_iter_timing", flip(&o.Iterations)},
		{"K", "per_iter_skip", nil},
	}
}

// only takes the values that ask for what bench does anyway. why says what it does.
func only(why string, values ...string) func(string) error {
	return func(s string) error {
		if !slices.Contains(values, s) {
			return fmt.Errorf("%s; give %s, or leave it out", why, strings.Join(values, " or "))
		}
		return nil
	}
}

// flip takes 0 and 1.
func flip(to *bool) func(string) error {
	return into(to, func(s string) (bool, error) {
		if s != "0" && s != "1" {
			return false, errors.New("it must be 0 or 1")
		}
		return s == "1", nil
	})
}

// theirTypes reads -d; all are the types that NCCL has.
func theirTypes(s string) ([]ccl.Type, error) {
	all, err := listTypes(s)
	if s == "all" {
		all = slices.DeleteFunc(all, func(t ccl.Type) bool { return t == ccl.TypeInt16 || t == ccl.TypeUint16 })
	}
	return all, err
}

// ParseAs reads the arguments of bench as the program of nccl-tests that name is: with its defaults, its options, and
// getopt_long's forms of them. Of bench's flags those with longer names that nccl-tests does not have are taken, too.
// getenv has nccl-tests' variables.
func ParseAs(name string, args []string, getenv func(string) string) (Options, error) {
	o := Default()
	collective, _ := Collective(name)
	o.As, o.Collectives, o.ItersGiven = name, []string{collective}, true
	o.Min, o.Max, o.Step, o.Factor = 32<<20, 32<<20, 1<<20, 0
	o.NP, o.Launcher = 1, "local"
	given := map[string]bool{}
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		var opt theirOption
		var err error
		switch {
		case arg == "--" && len(args) == 0:
			continue
		case strings.HasPrefix(arg, "--") && arg != "--":
			opt, err = o.long(arg)
		case strings.HasPrefix(arg, "-") && len(arg) > 1 && arg != "--":
			opt, err = o.short(arg)
		default:
			err = fmt.Errorf("%s: an argument without an option (-h lists them)", arg)
		}
		switch {
		case err != nil:
			return o, err
		case opt.set == nil:
			o.Help = true
			return o, nil
		case opt.takes && !opt.glued:
			if len(args) == 0 {
				return o, fmt.Errorf("%s needs a value", opt.said)
			}
			opt.value, args = args[0], args[1:]
		}
		value, err := theirValue(opt.name, opt.value)
		if err == nil {
			err = opt.set(value)
		}
		if err != nil {
			return o, fmt.Errorf("%s %s: %w", opt.said, opt.value, err)
		}
		given[opt.name] = true
	}
	return o.settleAs(given, getenv)
}

// theirOption is an option as it stands on a command line of theirs.
type theirOption struct {
	said, name   string // as it was written; the name of bench's flag
	value        string
	takes, glued bool
	set          func(s string) error // nil asks for help
}

// of is the option that a is, as said has it.
func (o *Options) of(a alias, said, value string, glued bool) theirOption {
	set := a.set
	if set == nil {
		set = o.flag(a.letter).set
	}
	return theirOption{said, a.letter, value, true, glued, set}
}

// long reads --name, --name=value and each beginning of a name that is no other's, too.
func (o *Options) long(arg string) (opt theirOption, err error) {
	name, value, glued := strings.Cut(strings.TrimPrefix(arg, "--"), "=")
	var names []string
	var found []alias
	for _, a := range aliases(o) {
		if a.long == name {
			return o.of(a, "--"+a.long, value, glued), nil
		}
		if name != "" && strings.HasPrefix(a.long, name) {
			found, names = append(found, a), append(names, "--"+a.long)
		}
	}
	if f := o.flag(name); f != nil && len(name) > 1 && f.name != "help" {
		return theirOption{"--" + f.name, f.name, value, f.value != "", glued && f.value != "", f.set}, nil
	}
	if name != "" && strings.HasPrefix("help", name) {
		return opt, nil
	}
	switch {
	case len(found) > 0 && !slices.ContainsFunc(found, func(a alias) bool { return a.letter != found[0].letter }):
		return o.of(found[0], "--"+found[0].long, value, glued), nil
	case len(found) > 0:
		return opt, fmt.Errorf("--%s: that may be %s; write more of it", name, strings.Join(names, " or "))
	}
	names = prose.Names(aliases(o), func(a alias) string { return a.long })
	return opt, unknown("--", name, "option", names, "-h lists them")
}

// short reads -x, with its value behind it or apart.
func (o *Options) short(arg string) (opt theirOption, err error) {
	letter, value := arg[1:2], arg[2:]
	if letter == "h" {
		return opt, nil
	}
	for _, a := range aliases(o) {
		if a.letter == letter {
			return o.of(a, "-"+letter, value, value != ""), nil
		}
	}
	return opt, fmt.Errorf("-%s: no such option (-h lists them)", letter)
}

// theirNumbers are the options whose values are whole numbers as C writes them: 0x10, 010.
const theirNumbers = "tgfnmwNpczyTGCSaRxDVMuIK"

// theirValue writes a value of theirs as bench's flag of that name takes it.
func theirValue(name, s string) (string, error) {
	switch {
	case name == "b" || name == "e" || name == "i":
		n, err := theirSize(s)
		return strconv.Itoa(n), err
	case len(name) == 1 && strings.Contains(theirNumbers, name):
		n, err := strconv.ParseInt(s, 0, 64)
		if err != nil {
			return s, errors.New("not a whole number")
		}
		return strconv.FormatInt(n, 10), nil
	}
	return s, nil
}

// theirSize reads a size as nccl-tests does: 1.5G, 8 K, 64MB. A part of a byte is dropped.
func theirSize(s string) (int, error) {
	end := strings.IndexFunc(s, func(r rune) bool { return !strings.ContainsRune("0123456789.eE+-", r) })
	if end < 0 {
		end = len(s)
	}
	n, err := strconv.ParseFloat(s[:end], 64)
	unit := strings.ToUpper(strings.TrimSpace(s[end:]))
	scale, known := map[string]float64{"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "KB": 1 << 10, "MB": 1 << 20,
		"GB": 1 << 30}[unit]
	switch {
	case errors.Is(err, strconv.ErrRange), n*scale >= math.MaxInt:
		return 0, errOverflow
	case err != nil, !known, !(n >= 0):
		return 0, errors.New("a size is a number with an optional K, M or G, such as 64K or 1.5G")
	}
	return int(n * scale), nil
}

// settleAs fills in what was not given, and refuses what does not fit together or nccl-tests would refuse.
func (o Options) settleAs(given map[string]bool, getenv func(string) string) (Options, error) {
	if o.Factor > 1 {
		o.Step = 0
	} else if o.Factor = 0; o.Step == 0 {
		if o.Min != o.Max {
			return o, errors.New("-i 0: the sizes would never grow; give -f 2, or a step")
		}
		o.Step = 1
	}
	if o.Min > o.Max {
		return o, fmt.Errorf("-b %s -e %s: the smallest size is larger than the largest; both default to 32M",
			FormatSize(o.Min), FormatSize(o.Max))
	}
	if err := o.variables(getenv); err != nil {
		return o, err
	}
	o.Threads *= o.PerThread
	o.JSON = free(o.JSON)
	given["G"] = given["G"] && o.Graph > 0 // as -z 0 and -G 0 are on many command lines
	given["z"] = given["z"] && o.Blocking != WaitAtEnd
	o.NPGiven, o.BackendGiven, o.MemGiven, o.BlockingGiven = given["np"], given["backend"], given["mem"], given["z"]
	return o.fit(given)
}

// free is the first of path, path.0, path.1 and so on that is not there yet: nccl-tests overwrites no results.
func free(path string) string {
	name := path
	for i := 0; path != ""; i++ {
		if info, err := os.Lstat(name); err != nil || !info.Mode().IsRegular() {
			break
		}
		name = path + "." + strconv.Itoa(i)
	}
	return name
}

// variables reads those of nccl-tests.
func (o *Options) variables(getenv func(string) string) error {
	refuse := func(name, why string) error { return fmt.Errorf("%s=%s: %s", name, getenv(name), why) }
	if v := getenv("NCCL_TESTS_MIN_BW"); v != "" {
		x, err := strconv.ParseFloat(v, 64)
		if err != nil || !(x >= 0) || math.IsInf(x, 0) {
			return refuse("NCCL_TESTS_MIN_BW", "it must be a number of GB/s, such as 12.5")
		}
		o.MinAverage = x * 0.9
	}
	if v := getenv("NCCL_TESTS_DEVICE"); v != "" {
		n, err := whole(v, 0)
		if err != nil {
			return refuse("NCCL_TESTS_DEVICE", "it must be a device number")
		}
		for i := range max(o.Threads*o.PerThread, 1) {
			o.Devices = append(o.Devices, n+i)
		}
	}
	for _, name := range []string{"NCCL_TESTS_SPLIT_MASK", "NCCL_TESTS_SPLIT"} {
		v := getenv(name)
		if v == "" {
			continue
		}
		if o.Threads*o.PerThread > 1 {
			return refuse(name, "nccl-tests splits processes, and bench splits ranks; give each process one rank, or use --split")
		}
		how, err := theirSplit(name, v)
		if err != nil {
			return refuse(name, err.Error())
		}
		o.Split = how
		return nil
	}
	return nil
}

// theirSplit reads the two variables that make groups: a mask in hexadecimal, or MOD, DIV or AND and a number.
func theirSplit(name, v string) (s Split, err error) {
	how, number, base := "mask", v, 16
	if name == "NCCL_TESTS_SPLIT" {
		base = 0
		how = ""
		for _, p := range []struct{ text, how string }{{"MOD", "mod"}, {"%", "mod"}, {"DIV", "div"}, {"/", "div"},
			{"AND", "mask"}, {"&", "mask"}} {
			if rest, ok := strings.CutPrefix(strings.ToUpper(v), p.text); ok {
				how, number = p.how, rest
				break
			}
		}
	}
	n, err := strconv.ParseInt(strings.ToLower(strings.TrimSpace(strings.TrimPrefix(number, "0x"))), base, 32)
	switch {
	case how == "":
		return s, errors.New("groups are MOD, DIV or AND and a number, such as MOD 8")
	case err != nil || n < 0 || n == 0 && how != "mask":
		return s, errors.New("it has no group number")
	case n == 0:
		return s, nil
	}
	return Split{How: how, N: int(n)}, nil
}

// theirHelp is what the options are for that differ from bench's flag with the same letter, or have none.
var theirHelp = map[string]string{
	"t": "threads per process, with -g ranks each (1)", "g": "ranks per thread (1)",
	"b": "smallest size (32M)", "e": "largest size (32M)", "i": "step from size to size in bytes (1M)",
	"f": "factor from size to size; without it the sizes grow by -i",
	"p": "taken without effect: the ranks always start at the same time", "o": "operator, or all (sum)",
	"n": "timed iterations (20)",
	"d": "element type, or all that NCCL has (float)", "N": "repeat everything N times; 0: for ever (1)",
	"y": "only 0: calls use a stream of their own", "C": "only 0: whole calls are timed",
	"S": "1: end each line with the time of day (0)",
	"J": "write the results as JSON; an existing file is kept, and the new one is FILE.0, FILE.1, ...",
	"x": "NCCL's CTA policy: 0 default, 1 efficiency, 2 zero", "D": "only 0: no engine calls from inside a kernel",
	"V": "taken without effect",
	"M": "1: report the memory that the ranks take (0)", "I": "1: time each iteration in a separate pass (0)",
}

// helpAs is what an option is for.
func helpAs(a alias) string {
	if text, has := theirHelp[a.letter]; has {
		return text
	}
	return new(Options).flag(a.letter).help
}

// HelpAs is what -h prints under a name of nccl-tests.
func HelpAs(name string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "USAGE: %s [options]\n\nbench of goccl, with the options of nccl-tests, their defaults, and getopt_long's forms of them:\n\n", name)
	all := aliases(new(Options))
	for i, a := range all {
		if i == 0 || all[i-1].letter != a.letter {
			lines := prose.Wrap(helpAs(a), 66)
			fmt.Fprintf(&b, "  %-28s %s\n", "-"+a.letter+",--"+a.long, strings.Join(lines, "\n"+strings.Repeat(" ", 31)))
		}
	}
	b.WriteString("  -h,--help\n\nbench's own flags with longer names, such as --backend, --html and --split, are taken, too.\nSee docs/nccl-tests.md, and bench -h.\n")
	return b.String()
}
