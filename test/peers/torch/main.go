// Command torch measures examples/gpt beside the same model in PyTorch, on as many processes of one thread, and its
// layouts beside each other: in interleaved rounds of one run. What counts are the ratios of tokens a second, round by
// round, their median and its 95 % interval. A bar is missed if the whole interval is on the wrong side.
//
//	go run ./test/peers/torch
//	go run ./test/peers/torch -rounds 5 -case char-2
package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/test/internal/measure"
)

// program is one side of a comparison: examples/gpt, or PyTorch.
type program struct {
	torch bool
	ranks int
	flags []string
}

// testCase is one comparison. The preset is examples/gpt's.
type testCase struct {
	name, preset                               string
	context, width, heads, layers, rows, steps int
	ours, theirs                               program
	bar                                        float64 // ours is at least this many times theirs
	exposed                                    float64 // and exposes at most so many percent of a step; 0: whatever
}

// char and baby are cases of two presets.
func char(name string, ours, theirs program, bar float64) testCase {
	return testCase{name, "char", 128, 128, 4, 4, 16, 20, ours, theirs, bar, 5}
}

func baby(name string, ours, theirs program, bar float64) testCase {
	return testCase{name, "babygpt", 256, 384, 6, 6, 8, 8, ours, theirs, bar, 3}
}

// gpt and torch are a program on so many ranks.
func gpt(ranks int, flags ...string) program   { return program{false, ranks, flags} }
func torch(ranks int, flags ...string) program { return program{true, ranks, flags} }

var cases = []testCase{
	char("char-1", gpt(1), torch(1), 0),
	char("char-2", gpt(2), torch(2), 1.05),
	baby("babygpt-1", gpt(1), torch(1), 0),
	baby("babygpt-2", gpt(2), torch(2), 1.05),
	baby("babygpt-fsdp", gpt(2, "-zero", "3"), torch(2, "--shard", "fsdp"), 0),
	char("char-2:1", gpt(2), gpt(1), 1.6),
	baby("babygpt-2:1", gpt(2), gpt(1), 1.6),
	baby("zero1:dp", gpt(2, "-zero", "1"), gpt(2), .97),
	baby("zero2:dp", gpt(2, "-zero", "2"), gpt(2), .95),
	baby("zero3:dp", gpt(2, "-zero", "3"), gpt(2), .92),
	baby("tp:dp", gpt(2, "-tp", "2"), gpt(2), .92),
	baby("megatron:dp", gpt(2, "-tp", "2", "-sp", "megatron"), gpt(2), .92),
	baby("pp:dp", gpt(2, "-pp", "2", "-micro", "4"), gpt(2, "-micro", "4"), .8), // less the bubble, 1/5
}

func main() {
	rounds := flag.Int("rounds", 5, "how often everything is measured in turn")
	only := flag.String("case", "", "comma-separated names of cases; empty: all")
	flag.Parse()
	if flag.NArg() > 0 || *rounds < 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := run(*rounds, *only); err != nil {
		fmt.Fprintln(os.Stderr, "torch:", err)
		os.Exit(1)
	}
}

func run(rounds int, only string) error {
	root, err := output(exec.Command("go", "list", "-m", "-f", "{{.Dir}}"))
	if err != nil {
		return err
	}
	here := filepath.Join(root, "test", "peers", "torch")
	site, err := output(exec.Command(filepath.Join(here, "fetch.sh")))
	if err != nil {
		if os.Getenv("GOCCL_REQUIRE") == "all" {
			return err
		}
		fmt.Println("torch: NOT RUN:", err)
		return nil
	}
	dir, err := os.MkdirTemp("", "goccl-torch-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	r := runner{dir: dir, gpt: filepath.Join(dir, "gpt"), script: filepath.Join(here, "gpt.py"), site: site}
	if _, err := output(exec.Command("go", "build", "-C", root, "-o", r.gpt, "./examples/gpt")); err != nil {
		return err
	}
	if r.vocab, err = tokens(filepath.Join(dir, "tokens")); err != nil {
		return err
	}
	fmt.Printf("%-14s %9s %9s %6s %-12s %-12s %s\n", "case", "tok/s", "beside", "ratio", "95 %", "bar",
		"exposed communication")
	found := false
	for _, c := range cases {
		if only != "" && !slices.Contains(strings.Split(only, ","), c.name) {
			continue
		}
		found = true
		if err := r.measure(&c, rounds); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	if !found {
		return fmt.Errorf("there is no case %q", only)
	}
	return nil
}

// tokens writes the data that both train on: the bytes of a book of the Go distribution, numbered. It returns how many
// there are.
func tokens(name string) (vocab int, err error) {
	goroot, err := output(exec.Command("go", "env", "GOROOT"))
	if err != nil {
		return 0, err
	}
	raw, err := os.ReadFile(filepath.Join(goroot, "src", "testdata", "Isaac.Newton-Opticks.txt"))
	if err != nil {
		return 0, err
	}
	chars := slices.Compact(slices.Sorted(slices.Values(raw)))
	out := make([]byte, 0, 4*len(raw))
	for _, b := range raw {
		i, _ := slices.BinarySearch(chars, b)
		out = binary.LittleEndian.AppendUint32(out, uint32(i))
	}
	return len(chars), os.WriteFile(name, out, 0o666)
}

// runner is where the programs are.
type runner struct {
	dir, gpt, script, site string
	vocab                  int
}

// measure runs the rounds of a case, and prints a line.
func (r *runner) measure(c *testCase, rounds int) error {
	var ours, theirs, ratios, exposed []float64
	for range rounds {
		a, hidden, err := r.run(c, c.ours)
		if err != nil {
			return err
		}
		b, _, err := r.run(c, c.theirs)
		if err != nil {
			return err
		}
		ours, theirs, ratios, exposed = append(ours, a), append(theirs, b), append(ratios, a/b), append(exposed, hidden)
	}
	a, _, _ := measure.Median(ours)
	b, _, _ := measure.Median(theirs)
	mid, low, high := measure.Median(ratios)
	part, least, _ := measure.Median(exposed)
	fmt.Printf("%-14s %9.0f %9.0f %6.2f %-12s %-12s", c.name, a, b, mid, fmt.Sprintf("%.2f..%.2f", low, high),
		verdict(c.bar, high >= c.bar))
	if c.ours.ranks > 1 && c.theirs.torch {
		fmt.Printf(" %.1f %%, %s", part, verdict(c.exposed, least <= c.exposed))
	}
	fmt.Println()
	return nil
}

// verdict says whether a bar is met; 0 is none.
func verdict(bar float64, met bool) string {
	switch {
	case bar == 0:
		return ""
	case met:
		return fmt.Sprintf("%g met", bar)
	}
	return fmt.Sprintf("%g MISSED", bar)
}

// run runs a program once: tokens a second, and the percentage of communication that it exposes.
func (r *runner) run(c *testCase, p program) (speed, exposed float64, err error) {
	number := func(flag string, n int) []string { return []string{flag, strconv.Itoa(n)} }
	if p.torch {
		args := slices.Concat([]string{"-W", "ignore", r.script}, number("--ranks", p.ranks), number("--vocab", r.vocab),
			number("--context", c.context),
			number("--width", c.width), number("--heads", c.heads), number("--layers", c.layers), number("--rows", c.rows),
			number("--steps", c.steps),
			[]string{"--tokens", filepath.Join(r.dir, "tokens")}, p.flags)
		cmd := exec.Command("python3", args...)
		cmd.Env = append(os.Environ(), "PYTHONPATH="+r.site, "LD_LIBRARY_PATH="+filepath.Join(r.site, "stubs"),
			"OMP_NUM_THREADS=1")
		out, err := output(cmd)
		if err != nil {
			return 0, 0, err
		}
		speed, err = c.speed([]byte(out), func(l line) float64 { return l.Seconds })
		return speed, 0, err
	}
	log := filepath.Join(r.dir, "log.json")
	args := slices.Concat(number("-np", p.ranks), []string{"-preset", c.preset, "-json", log}, number("-rows", c.rows),
		number("-steps", c.steps), p.flags)
	out, err := output(exec.Command(r.gpt, args...))
	if err != nil {
		return 0, 0, err
	}
	if _, err := fmt.Sscanf(out[strings.LastIndex(out, "exposed communication "):], "exposed communication %f",
		&exposed); err != nil {
		return 0, 0, fmt.Errorf("gpt's last line: %w", err)
	}
	text, err := os.ReadFile(log)
	if err != nil {
		return 0, 0, err
	}
	speed, err = c.speed(text, func(l line) float64 { return l.DT.Max })
	return speed, exposed, err
}

// line is what either program says of a step.
type line struct {
	Step    int
	Seconds float64
	DT      struct{ Max float64 } `json:"dt"`
}

// speed is the median of the tokens a second of the steps after the third.
func (c *testCase) speed(lines []byte, seconds func(line) float64) (float64, error) {
	var all []float64
	for s := bufio.NewScanner(bytes.NewReader(lines)); s.Scan(); {
		var l line
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			return 0, fmt.Errorf("%q: %w", s.Text(), err)
		}
		if l.Step > 3 {
			all = append(all, float64(c.rows*c.context)/seconds(l))
		}
	}
	if len(all) != c.steps-3 {
		return 0, fmt.Errorf("%d steps instead of %d", len(all), c.steps-3)
	}
	mid, _, _ := measure.Median(all)
	return mid, nil
}

// output runs a command, and returns what it prints; its error has what it says on standard error.
func output(cmd *exec.Cmd) (string, error) {
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(cmd.Path), err, strings.TrimSpace(stderr.String()))
	}
	return strings.TrimSpace(string(out)), nil
}
