package history

import (
	"bufio"
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strings"
)

// The plot, in pixels: panels below each other, each with a margin for its numbers.
const (
	plotWidth   = 800
	panelHeight = 260
	left        = 70
	right       = 20
	top         = 30
	bottom      = 40
	columns     = plotWidth - left - right
)

// column is the steps of a metric that fall on one pixel.
type column struct {
	n              int
	mean, min, max float64
	gap            bool // some are not finite
}

// SVG writes a plot of metrics, of all of them if none is named: below each other, over the steps,
// the mean as a line in a band from the minimum to the maximum of the ranks. The file needs nothing
// else. Values that are not finite leave a gap. The axes have round numbers. Where steps outnumber
// pixels the line is their mean, and the band holds them all. Of a run that has logged nothing the
// plot is empty.
func (h *History) SVG(w io.Writer, names ...string) error {
	names, err := h.named("SVG", names)
	if err != nil {
		return err
	}
	b := bufio.NewWriter(w)
	fmt.Fprintf(b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n",
		plotWidth, panelHeight*max(len(names), 1))
	fmt.Fprintf(b, `<rect width="100%%" height="100%%" fill="white"/>`+"\n")
	for i, name := range names {
		fmt.Fprintf(b, `<g transform="translate(0,%d)">`+"\n", i*panelHeight)
		h.panel(b, name)
		fmt.Fprintln(b, `</g>`)
	}
	fmt.Fprintln(b, `</svg>`)
	if err := b.Flush(); err != nil {
		return fmt.Errorf("history: SVG: %w", err)
	}
	return nil
}

// panel draws one metric.
func (h *History) panel(w io.Writer, name string) {
	r := h.series[name]
	first, last := float64(r.steps[0]), float64(r.steps[len(r.steps)-1])
	cols := make([]column, columns+1)
	lo, hi := math.Inf(1), math.Inf(-1)
	for i, s := range r.stats {
		at := 0
		if last > first {
			at = int(math.Round((float64(r.steps[i]) - first) / (last - first) * columns))
		}
		c := &cols[at]
		if !finite(s.Mean + s.Min + s.Max) {
			c.gap = true
			continue
		}
		if c.n == 0 {
			c.min, c.max = s.Min, s.Max
		}
		c.n++
		c.mean += (s.Mean - c.mean) / float64(c.n)
		c.min, c.max = min(c.min, s.Min), max(c.max, s.Max)
		lo, hi = min(lo, s.Min), max(hi, s.Max)
	}
	if lo > hi {
		lo, hi = 0, 1
	}
	if lo == hi {
		around := math.Max(math.Abs(lo)/2, .5)
		lo, hi = math.Max(lo-around, -math.MaxFloat64), math.Min(hi+around, math.MaxFloat64)
	}
	y := func(v float64) float64 { // halves, since hi-lo may not be a finite number
		return top + (hi/2-v/2)/(hi/2-lo/2)*(panelHeight-top-bottom)
	}
	const rows, steps = 6, 8 // of labels, at most
	for _, k := range ticks(lo, hi, rows, false) {
		fmt.Fprintf(w, `<path d="M%d %.1fH%d" stroke="#ddd"/><text x="%d" y="%.1f" text-anchor="end">%s</text>`+"\n",
			left, y(k.at), plotWidth-right, left-6, y(k.at)+4, k.text)
	}
	const floor = panelHeight - bottom
	fmt.Fprintf(w, `<path d="M%d %dH%d" stroke="#999"/>`+"\n", left, floor, plotWidth-right)
	for _, k := range ticks(first, last, steps, true) {
		x := float64(left)
		if last > first {
			x += (k.at - first) / (last - first) * columns
		}
		fmt.Fprintf(w, `<path d="M%.1f %dv4" stroke="#999"/><text x="%.1f" y="%d" text-anchor="middle">%s</text>`+"\n", x,
			floor, x, floor+17, k.text)
	}
	fmt.Fprintf(w, `<text x="%d" y="%d" text-anchor="middle">step</text>`+"\n", left+columns/2, floor+32)
	fmt.Fprintf(w, `<text x="%d" y="18" font-weight="bold">%s</text>`+"\n", left, escape(name))
	runs(cols, func(at []int) {
		var band, line strings.Builder
		for i, x := range at {
			fmt.Fprintf(&line, "%s%d %.1f", pen(i), left+x, y(cols[x].mean))
			fmt.Fprintf(&band, "%s%d %.1f", pen(i), left+x, y(cols[x].max))
		}
		for i := len(at) - 1; i >= 0; i-- {
			fmt.Fprintf(&band, "L%d %.1f", left+at[i], y(cols[at[i]].min))
		}
		if len(at) == 1 { // a line of one point
			line.WriteString("h1")
		}
		fmt.Fprintf(w, `<path d="%sZ" fill="#4a90d9" fill-opacity=".25"/><path d="%s" fill="none" stroke="#1f5fa8" stroke-width="1.5"/>`+"\n", &band, &line)
	})
}

// runs calls draw for the columns between gaps: values that are not finite.
func runs(cols []column, draw func(at []int)) {
	var at []int
	for x := range cols {
		if cols[x].n > 0 {
			at = append(at, x)
		} else if cols[x].gap && at != nil {
			draw(at)
			at = nil
		}
	}
	if at != nil {
		draw(at)
	}
}

func pen(i int) string {
	if i == 0 {
		return "M"
	}
	return "L"
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // whose errors are those of what it writes to
	return b.String()
}
