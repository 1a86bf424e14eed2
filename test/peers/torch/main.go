// Command torch measures examples/gpt beside the same model in PyTorch, on as many processes of one thread: in
// interleaved rounds of one run. What counts are the ratios of tokens a second, round by round, their median and its 95 %
// interval.
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

// testCase is one comparison.
type testCase struct {
	name                                 string
	context, width, heads, layers, steps int
	rows, ranks                          int
	ours, theirs                         []string // further flags
	bar                                  float64  // ours is at least this many times theirs
}

var cases = []testCase{
	{name: "char-1", context: 128, width: 128, heads: 4, layers: 4, rows: 16, ranks: 1, steps: 20},
	{name: "char-2", context: 128, width: 128, heads: 4, layers: 4, rows: 16, ranks: 2, steps: 20, bar: 1.05},
	{name: "babygpt-1", context: 256, width: 384, heads: 6, layers: 6, rows: 8, ranks: 1, steps: 8},
	{name: "babygpt-2", context: 256, width: 384, heads: 6, layers: 6, rows: 8, ranks: 2, steps: 8, bar: 1.05},
	{name: "babygpt-2-sharded", context: 256, width: 384, heads: 6, layers: 6, rows: 8, ranks: 2, steps: 8,
		ours: []string{"-zero", "3"}, theirs: []string{"--shard", "fsdp"}},
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
	gpt := filepath.Join(dir, "gpt")
	if _, err := output(exec.Command("go", "build", "-C", root, "-o", gpt, "./examples/gpt")); err != nil {
		return err
	}
	vocab, err := tokens(filepath.Join(dir, "tokens"))
	if err != nil {
		return err
	}
	fmt.Printf("%-18s %5s %12s %12s %6s %-13s %s\n", "case", "ranks", "ours tok/s", "PyTorch's", "ratio", "95 %", "bar")
	found := false
	for _, c := range cases {
		if only != "" && !slices.Contains(strings.Split(only, ","), c.name) {
			continue
		}
		found = true
		if err := c.measure(rounds, gpt, filepath.Join(here, "gpt.py"), site, dir, vocab); err != nil {
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

func (c *testCase) measure(rounds int, gpt, script, site, dir string, vocab int) error {
	var ours, theirs, ratios []float64
	for range rounds {
		log := filepath.Join(dir, "log.json")
		cmd := exec.Command(gpt, append([]string{"-np", strconv.Itoa(c.ranks), "-context", strconv.Itoa(c.context), "-width", strconv.Itoa(c.width),
			"-heads", strconv.Itoa(c.heads), "-layers", strconv.Itoa(c.layers), "-rows", strconv.Itoa(c.rows), "-steps", strconv.Itoa(c.steps),
			"-json", log}, c.ours...)...)
		if _, err := output(cmd); err != nil {
			return err
		}
		text, err := os.ReadFile(log)
		if err != nil {
			return err
		}
		mine, err := c.speed(text, func(l line) float64 { return l.DT.Max })
		if err != nil {
			return err
		}
		cmd = exec.Command("python3", append([]string{"-W", "ignore", script, "--ranks", strconv.Itoa(c.ranks), "--vocab", strconv.Itoa(vocab),
			"--context", strconv.Itoa(c.context), "--width", strconv.Itoa(c.width), "--heads", strconv.Itoa(c.heads),
			"--layers", strconv.Itoa(c.layers), "--rows", strconv.Itoa(c.rows), "--steps", strconv.Itoa(c.steps),
			"--tokens", filepath.Join(dir, "tokens")}, c.theirs...)...)
		cmd.Env = append(os.Environ(), "PYTHONPATH="+site, "LD_LIBRARY_PATH="+filepath.Join(site, "stubs"), "OMP_NUM_THREADS=1")
		said, err := output(cmd)
		if err != nil {
			return err
		}
		other, err := c.speed([]byte(said), func(l line) float64 { return l.Seconds })
		if err != nil {
			return err
		}
		ours, theirs, ratios = append(ours, mine), append(theirs, other), append(ratios, mine/other)
	}
	m, _, _ := measure.Median(ours)
	o, _, _ := measure.Median(theirs)
	mid, low, high := measure.Median(ratios)
	verdict := ""
	if c.bar > 0 {
		verdict = fmt.Sprintf("%.2f met", c.bar)
		if high < c.bar {
			verdict = fmt.Sprintf("%.2f MISSED", c.bar)
		}
	}
	fmt.Printf("%-18s %5d %12.0f %12.0f %6.2f %-13s %s\n", c.name, c.ranks, m, o, mid, fmt.Sprintf("%.2f..%.2f", low, high), verdict)
	return nil
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
