// Command transformers measures a step of package train/fit, on XLA's plugin for CPUs, beside one of the same model of
// transformers, eager and compiled by torch.compile: one process each, in interleaved rounds. It prints seconds, the
// ratios of theirs to ours with their 95 % intervals, and how much memory each process has held at most.
//
//	go run ./test/peers/transformers -rounds 5 -case llama-42M
package main

import (
	"bytes"
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

// cases are models, by their config.json, and the rows of a step and their tokens.
var cases = []struct {
	name, config string
	rows, tokens int
}{
	{"gpt2-124M", `{"model_type":"gpt2","resid_pdrop":0,"embd_pdrop":0,"attn_pdrop":0}`, 2, 256},
	{"llama-42M", `{"model_type":"llama","vocab_size":8192,"hidden_size":512,"intermediate_size":1408,"num_hidden_layers":12,
		"num_attention_heads":8,"num_key_value_heads":4,"max_position_embeddings":512,"rms_norm_eps":1e-5,
		"tie_word_embeddings":false}`, 4, 256},
}

// steps are those of a run. The first two compile, or touch memory, and do not count.
const steps, begin = 6, 2

func main() {
	rounds := flag.Int("rounds", 5, "how often everything is measured in turn")
	only := flag.String("case", "", "a case; empty: all")
	flag.Parse()
	if err := run(*rounds, *only); err != nil {
		fmt.Fprintln(os.Stderr, "transformers:", err)
		os.Exit(1)
	}
}

func run(rounds int, only string) error {
	site, err := command(nil, "test/peers/transformers/fetch.sh")
	if err != nil {
		return err
	}
	torch := site[strings.LastIndex(site, ":")+1:]
	dir, err := os.MkdirTemp("", "goccl-transformers-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "fit.test")
	build := []string{"test", "-c", "-tags", "xla", "-o", program, "./train/fit"}
	if _, err := command([]string{"CGO_ENABLED=1"}, "go", build...); err != nil {
		return err
	}
	env := []string{"PYTHONPATH=" + site, "LD_LIBRARY_PATH=" + filepath.Join(torch, "stubs"), "HF_HUB_OFFLINE=1"}
	fmt.Printf("%-10s %-8s %9s %6s %-12s %7s\n", "case", "", "s a step", "ratio", "95 %", "MB")
	for _, c := range cases {
		if only != "" && only != c.name {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(c.config), 0o666); err != nil {
			return err
		}
		sizes := []string{dir, strconv.Itoa(c.rows), strconv.Itoa(c.tokens), strconv.Itoa(steps)}
		script := func(more ...string) func() (string, error) {
			return func() (string, error) {
				args := []string{"-W", "ignore", "test/peers/transformers/step.py"}
				return command(env, "python3", slices.Concat(args, sizes, more)...)
			}
		}
		sides := []struct {
			name string
			run  func() (string, error)
		}{
			{"goccl", func() (string, error) {
				return command([]string{"GOCCL_TEST_STEP=" + strings.Join(sizes, ",")}, program, "-test.run", "^TestStep$")
			}},
			{"eager", script()},
			{"compile", script("compile")},
		}
		seconds, memory := make([][]float64, len(sides)), make([][]float64, len(sides))
		for range rounds {
			for i, s := range sides {
				took, peak, err := said(s.run())
				if err != nil {
					return fmt.Errorf("%s, %s: %w", c.name, s.name, err)
				}
				seconds[i], memory[i] = append(seconds[i], took), append(memory[i], peak)
			}
		}
		for i, s := range sides {
			took, _, _ := measure.Median(seconds[i])
			peak, _, _ := measure.Median(memory[i])
			mid, low, high := measure.Median(measure.Ratios(seconds[i], seconds[0]))
			interval := fmt.Sprintf("%.2f..%.2f", low, high)
			fmt.Printf("%-10s %-8s %9.3f %6.2f %-12s %7.0f\n", c.name, s.name, took, mid, interval, peak/1e6)
		}
	}
	return nil
}

// said is what a program has printed: the median of the seconds of its steps, and the most bytes it has held.
func said(out string, err error) (seconds, peak float64, _ error) {
	if err != nil {
		return 0, 0, err
	}
	var all []float64
	for line := range strings.Lines(out) {
		var l struct{ Seconds, Peak float64 }
		if json.Unmarshal([]byte(line), &l) != nil {
			continue
		}
		if peak = max(peak, l.Peak); l.Seconds > 0 {
			all = append(all, l.Seconds)
		}
	}
	if len(all) != steps || peak == 0 {
		return 0, 0, fmt.Errorf("%d of %d steps and a peak of %.0f bytes in:\n%s", len(all), steps, peak, out)
	}
	mid, _, _ := measure.Median(all[begin:])
	return mid, peak, nil
}

// command runs a program with more in its environment, and returns what it prints.
func command(env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	var out, trouble bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &trouble
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", filepath.Base(name), err, strings.TrimSpace(out.String()+trouble.String()))
	}
	return strings.TrimSpace(out.String()), nil
}
