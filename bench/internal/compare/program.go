package compare

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/report"
)

// defaultBudget leaves room for the last round within a minute.
const defaultBudget = 50 * time.Second

// narrow enough is an interval of 2 % to each side, or half of the threshold: a wider one reaches beyond it.
const (
	narrow   = 0.02
	narrower = 0.002 // is never asked for
)

// enoughFor is half of an interval that is narrow enough for a threshold.
func enoughFor(threshold float64) float64 { return max(min(narrow, threshold/2), narrower) }

// program is one side of ab: what is started, and how.
type program struct {
	path string
	args []string
	env  []string
}

// newProgram reads an operand of ab.
func newProgram(operand string, flags []string) (*program, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this program: %w", err)
	}
	p := &program{path: self, args: flags}
	switch {
	case operand == "-":
	case strings.HasPrefix(operand, "-"):
		p.args = append(append([]string{}, flags...), strings.Fields(operand)...)
		if _, err := option.Parse(p.args); err != nil {
			return nil, fmt.Errorf("%q: %w", operand, err)
		}
	default:
		if p.path, err = exec.LookPath(operand); err != nil {
			return nil, fmt.Errorf(`%s: no such program; flags are given as one word in quotes, "-m 4"`, operand)
		}
	}
	return p, nil
}

// run starts the program once and reads what it has measured.
func (p *program) run(ctx context.Context) (run, error) {
	dir, err := os.MkdirTemp("", "bench-ab-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "out.json")
	var stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, p.path, append(append([]string{}, p.args...), "-J", file)...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stderr = &stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, errors.New("interrupted")
		}
		return nil, fmt.Errorf("%s %s: %w\n%s", p.path, strings.Join(p.args, " "), err, bytes.TrimSpace(stderr.Bytes()))
	}
	f, _, err := report.Load(file)
	if _, none := os.Stat(file); errors.Is(none, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s has ended well, but has not written the file that -J names: it is no build of bench", p.path)
	} else if err != nil {
		return nil, fmt.Errorf("%s: what it has written: %w", p.path, err)
	}
	return runOf(f), nil
}

func newTrial(rounds int, budget time.Duration, threshold float64, programs [2]*program) *trial {
	return &trial{
		rounds: rounds, budget: budget, enough: enoughFor(threshold), leeway: threshold, now: time.Now, draw: rand.IntN,
		start: func(ctx context.Context, side int) (run, error) { return programs[side].run(ctx) },
	}
}
