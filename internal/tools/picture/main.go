// Command picture draws the bus bandwidth of AllReduce beside the peers, from a page of
// docs/measured, as README shows it.
//
//	go run ./picture ../../docs/measured/intel.md ../../docs/busbw.svg
package main

import (
	"bufio"
	"fmt"
	"image/color"
	"math"
	"os"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgsvg"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: picture PAGE.md FILE.svg")
		os.Exit(2)
	}
	if err := picture(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "picture:", err)
		os.Exit(1)
	}
}

// point is a row of a table that test/peers writes.
type point struct{ bytes, ours, best float64 } // microseconds

// rows are those of AllReduce in section name of a page, by size.
func rows(path, name string) ([]point, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []point
	in := bufio.NewScanner(f)
	for inside := false; in.Scan(); {
		line := in.Text()
		if strings.HasPrefix(line, "## ") {
			inside = line == "## "+name
		}
		var p point
		if !inside {
			continue
		}
		if n, _ := fmt.Sscanf(line, " allreduce %g %g %g", &p.bytes, &p.ours, &p.best); n == 3 {
			if !(p.bytes > 0 && p.ours > 0 && p.best > 0) {
				return nil, fmt.Errorf("%s: %s: %q makes no sense", path, name, line)
			}
			all = append(all, p)
		}
	}
	if err := in.Err(); err != nil {
		return nil, err
	}
	if len(all) < 2 {
		return nil, fmt.Errorf("%s has no table of AllReduce in section %s", path, name)
	}
	return all, nil
}

// sizes marks every third power of two.
type sizes struct{}

func (sizes) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for k := math.Ceil(math.Log2(low)); k <= math.Log2(high); k += 3 {
		b := math.Exp2(k)
		text := fmt.Sprintf("%g B", b)
		switch {
		case b >= 1<<20:
			text = fmt.Sprintf("%g MiB", b/(1<<20))
		case b >= 1<<10:
			text = fmt.Sprintf("%g KiB", b/(1<<10))
		}
		ticks = append(ticks, plot.Tick{Value: b, Label: text})
	}
	return ticks
}

func picture(page, file string) error {
	all, err := rows(page, "allreduce-2")
	if err != nil {
		return err
	}
	p := plot.New()
	p.Title.Text = "AllReduce, two ranks on one host: bus bandwidth"
	p.Title.Padding = vg.Points(8)
	p.X.Label.Text = "size of the vector"
	p.Y.Label.Text = "GB/s"
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, sizes{}
	p.Y.Min = 0
	p.Legend.Top, p.Legend.Left = true, true
	p.Legend.Padding = vg.Points(4)
	p.Add(plotter.NewGrid())
	for _, line := range []struct {
		name string
		of   func(point) float64
		c    color.Color
	}{
		{"goccl", func(p point) float64 { return p.ours }, color.RGBA{0, 110, 190, 255}},
		{"the best of Open MPI, MPICH, Gloo", func(p point) float64 { return p.best }, color.RGBA{200, 90, 0, 255}},
	} {
		xy := make(plotter.XYs, len(all))
		for i, q := range all {
			xy[i] = plotter.XY{X: q.bytes, Y: q.bytes / line.of(q) / 1e3} // two ranks: bus bandwidth is bytes by time
		}
		l, dots, err := plotter.NewLinePoints(xy)
		if err != nil {
			return err
		}
		l.Color, dots.Color, l.Width = line.c, line.c, vg.Points(2)
		p.Add(l, dots)
		p.Legend.Add(line.name, l, dots)
	}
	p.Y.Max *= 1.3 // room for the legend above the lines
	p.X.Padding = vg.Points(6)
	p.X.Max *= 1.6 // and for the last size
	return save(p, file)
}

// save writes p as SVG, with a margin: Plot.Save would put the title at the very edge.
func save(p *plot.Plot, file string) error {
	const margin = 8
	c := vgsvg.New(18*vg.Centimeter, 9*vg.Centimeter)
	page := draw.New(c)
	page.SetColor(color.White)
	page.Fill(page.Rectangle.Path())
	p.Draw(draw.Crop(page, margin, -margin, margin, -margin))
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	if _, err := c.WriteTo(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
