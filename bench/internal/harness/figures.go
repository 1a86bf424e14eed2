package harness

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccl/goccl/bench/internal/prose"
	"github.com/goccl/goccl/bench/internal/report"
)

// drawing is how long one picture may take to draw.
const drawing = time.Minute

// painter is a program that draws a file of SVG as one of PNG.
type painter struct {
	name string
	args func(from, to, profile string, wide, high int) []string
}

// painters are those that are looked for, in that order. All draw at twice the size.
var painters = []painter{
	{"rsvg-convert", func(from, to, _ string, _, _ int) []string { return []string{"--zoom=2", "-o", to, from} }},
	{"chromium", chrome}, {"chromium-browser", chrome}, {"google-chrome", chrome}, {"chrome", chrome},
}

func chrome(from, to, profile string, wide, high int) []string {
	args := []string{"--headless", "--disable-gpu", "--disable-background-networking", "--no-first-run",
		"--hide-scrollbars", "--user-data-dir=" + profile,
		fmt.Sprintf("--window-size=%d,%d", wide, high), "--force-device-scale-factor=2", "--screenshot=" + to}
	if os.Geteuid() == 0 {
		args = append(args, "--no-sandbox") // which it refuses to root
	}
	return append(args, "file://"+from)
}

// rasterizer finds one.
func rasterizer() (render func(from, to string, wide, high int) error, err error) {
	for _, p := range painters {
		path, err := exec.LookPath(p.name)
		if err != nil {
			continue
		}
		return func(from, to string, wide, high int) error {
			to, err := filepath.Abs(to)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(context.Background(), drawing)
			defer cancel()
			out, err := exec.CommandContext(ctx, path, p.args(from, to, filepath.Dir(from), wide, high)...).CombinedOutput()
			if err != nil {
				return fmt.Errorf("%s: %w: %.300s", path, err, out)
			}
			return nil
		}, nil
	}
	names := prose.Names(painters, func(p painter) string { return p.name })
	return nil, fmt.Errorf("-png needs one of %s to draw with; install one, or use -svg, which needs none",
		strings.Join(names, ", "))
}

// figures writes those that were asked for.
func (p *plan) figures(f *report.File) (err error) {
	if p.SVG != "" {
		err = f.SaveFigures("svg", p.SVG, nil)
	}
	if p.PNG != "" {
		render, e := rasterizer()
		if e == nil {
			e = f.SaveFigures("png", p.PNG, render)
		}
		err = errors.Join(err, e)
	}
	return err
}
