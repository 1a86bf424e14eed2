package report

import (
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"
)

// The pictures are written here rather than by a plotting library, since their colours
// must follow the page's, which the reader's dark mode changes.

// figure is one picture: in the page, where legend and caption are text beside it, and as a file of its own.
type figure struct {
	name    string // of the file
	title   string
	caption string
	note    string // what the caption also says where the figure stands without the page
	shapes  string // the inside of its svg element
	class   string // the attribute of that element, after a blank, if it has one
	height  float64
	entries []entry
	nothing bool // to draw
}

// entry is one line of a legend.
type entry struct{ class, name string }

// series is one line of a plot.
type series struct {
	name   string
	color  int
	dotted bool
	x, y   []float64
}

// plot is lines over sizes, on a logarithmic axis.
type plot struct {
	title, unit string
	axis        string // what the upright axis shows
	log         bool   // the other axis, too
	series      []series
	ceiling     float64 // 0: none
}

// mostSizes are the steps between the sizes that an axis names: letters are larger where the window is narrow.
const mostSizes = 6

// The picture's size, and its margins.
const (
	width, height            = 720.0, 374.0
	left, right, top, bottom = 76.0, 12.0, 32.0, 66.0
)

// mostTogether are the lines of one figure: six colours, each drawn through and dashed.
const mostTogether = 12

// curveClass is how the line of a colour is drawn: beyond the last colour they begin anew, dashed.
func curveClass(color int) string {
	class := fmt.Sprintf("curve c%d", color%6)
	if color >= 6 {
		class += " again"
	}
	return class
}

// figure draws p: curves over sizes, or bars of a single size.
func (p *plot) figure(name, caption, note string) *figure {
	f := &figure{name: name, title: p.title, caption: caption, note: note, height: height}
	xlow, xhigh, ylow, yhigh := p.ranges()
	if f.nothing = !(xhigh > 0) || !(yhigh > 0); f.nothing {
		return f
	}
	if p.single() {
		p.bars(f)
		return f
	}
	X := func(x float64) float64 {
		return left + (width-left-right)*(math.Log2(x)-math.Log2(xlow))/(math.Log2(xhigh)-math.Log2(xlow))
	}
	Y := func(y float64) float64 {
		share := y / yhigh
		if p.log {
			share = math.Log10(y/ylow) / math.Log10(yhigh/ylow)
		}
		return height - bottom - (height-top-bottom)*share
	}
	var b strings.Builder
	for _, y := range p.ticks(ylow, yhigh) {
		fmt.Fprintf(&b, `<line class="grid" x1="%g" x2="%g" y1="%.1f" y2="%.1f"/><text x="%g" y="%.1f" text-anchor="end">%s</text>`,
			left, width-right, Y(y), Y(y), left-6, Y(y)+4, label(y))
	}
	lowest, highest := int(math.Log2(xlow)), int(math.Log2(xhigh))
	for k := lowest; k <= highest; k += max((highest-lowest+mostSizes-1)/mostSizes, 1) {
		x := math.Exp2(float64(k))
		if x < xlow {
			continue
		}
		at, anchor := X(x), "middle"
		if at > width-right-30 {
			at, anchor = width, "end" // it would be cut off
		}
		fmt.Fprintf(&b, `<line class="grid" x1="%.1f" x2="%.1f" y1="%g" y2="%g"/><text x="%.1f" y="%g" text-anchor="%s">%s</text>`,
			X(x), X(x), top, height-bottom, at, height-bottom+28, anchor, sizeOf(x))
	}
	fmt.Fprintf(&b, `<line class="axis" x1="%g" x2="%g" y1="%g" y2="%g"/><text x="%g" y="22">%s (%s)</text>`, left,
		width-right, height-bottom, height-bottom, left, p.axis, p.unit)
	fmt.Fprintf(&b, `<text x="%g" y="%g" text-anchor="middle">size of the data (bytes)</text>`, (left+width-right)/2,
		height-bottom+56)
	if p.ceiling > 0 {
		fmt.Fprintf(&b, `<line class="ceiling" x1="%g" x2="%g" y1="%.1f" y2="%.1f"><title>%s GB/s</title></line>`, left,
			width-right, Y(p.ceiling), Y(p.ceiling), label(p.ceiling))
	}
	for _, s := range p.series {
		if len(s.x) == 0 {
			continue
		}
		class := curveClass(s.color)
		if s.dotted {
			class += " in"
		}
		var points []string
		for i := range s.x {
			if y := s.y[i]; y > 0 || !p.log {
				points = append(points, fmt.Sprintf("%.1f,%.1f", X(s.x[i]), Y(y)))
			}
		}
		fmt.Fprintf(&b, `<polyline class="%s" points="%s"/>`, class, strings.Join(points, " "))
		if !s.dotted || len(s.x) == 1 {
			for i := range s.x {
				if s.y[i] > 0 || !p.log {
					fmt.Fprintf(&b, `<circle class="d%d" cx="%.1f" cy="%.1f" r="3"><title>%s, %s: %s %s</title></circle>`,
						s.color%6, X(s.x[i]), Y(s.y[i]), template.HTMLEscapeString(s.name), sizeOf(s.x[i]), label(s.y[i]), p.unit)
				}
			}
		}
		f.entries = append(f.entries, entry{class, s.name})
	}
	if p.ceiling > 0 {
		f.entries = append(f.entries, entry{"ceiling", "ceiling"})
	}
	f.shapes = b.String()
	return f
}

// ranges are what the axes reach over.
func (p *plot) ranges() (xlow, xhigh, ylow, yhigh float64) {
	xlow, ylow = math.Inf(1), math.Inf(1)
	for _, s := range p.series {
		for i := range s.x {
			xlow, xhigh = min(xlow, s.x[i]), max(xhigh, s.x[i])
			if s.y[i] > 0 {
				ylow, yhigh = min(ylow, s.y[i]), max(yhigh, s.y[i])
			}
		}
	}
	if p.log {
		ylow = math.Pow(10, math.Floor(math.Log10(ylow)))
		yhigh = math.Pow(10, math.Ceil(math.Log10(yhigh*1.0001)))
		return xlow, xhigh, ylow, yhigh
	}
	return xlow, xhigh, 0, max(yhigh, p.ceiling) * 1.05
}

// ticks are the values that the upright axis names.
func (p *plot) ticks(low, high float64) (ticks []float64) {
	if p.log {
		for y := low; y <= high*1.001; y *= 10 {
			ticks = append(ticks, y)
		}
		return ticks
	}
	step := math.Pow(10, math.Floor(math.Log10(high/4)))
	for _, k := range []float64{5, 2} {
		if high/(k*step) >= 4 {
			step *= k
			break
		}
	}
	for k := 0; float64(k)*step <= high; k++ {
		ticks = append(ticks, float64(k)*step)
	}
	return ticks
}

// label writes a number for an axis.
func label(x float64) string { return scaled(x, "", "k", "M") }

// micros writes microseconds for people.
func micros(us float64) string { return scaled(us, " us", " ms", " s") }

// scaled writes x with its unit, or from ten thousand on in thousands, and from a million on in millions of them.
func scaled(x float64, ones, thousands, millions string) string {
	switch {
	case x >= 1e6:
		return fmt.Sprintf("%.4g%s", x/1e6, millions)
	case x >= 1e4:
		return fmt.Sprintf("%.4g%s", x/1e3, thousands)
	}
	return fmt.Sprintf("%.4g%s", x, ones)
}

// sizeOf writes a size for people.
func sizeOf(x float64) string {
	for _, u := range []struct {
		at   float64
		name string
	}{{1 << 30, "GiB"}, {1 << 20, "MiB"}, {1 << 10, "KiB"}} {
		if x >= u.at {
			return fmt.Sprintf("%.4g %s", x/u.at, u.name)
		}
	}
	return fmt.Sprintf("%g B", x)
}

// The most fields of a heat map to each side; beyond, each field is the longest of
// those that it stands for.
const (
	mostRows    = 64
	mostColumns = 160
)

// heatOf draws each rank's times of r, iteration by iteration.
func heatOf(name, title string, r *Row, note string) *figure {
	field := shrink(r.OutOfPlaceIter.Ranks, mostRows, mostColumns)
	var all []float64
	for _, row := range field {
		all = append(all, row...)
	}
	slices.Sort(all)
	// The longest one in fifty would leave nothing but white for all others.
	low, high := all[0], all[(len(all)-1)*98/100]
	h, columns := 14.0, float64(len(field[0]))
	if len(field) <= 16 {
		h = 24
	}
	wide := (width - left - right) / columns
	const begin, letters = 38.0, 26.0 // where the fields begin, and how high a letter is at most
	named := int(math.Ceil(letters / h))
	var b strings.Builder
	fmt.Fprintf(&b, `<text x="%g" y="22" text-anchor="end">rank</text>`, left-6)
	for i, row := range field {
		if i%named == 0 {
			fmt.Fprintf(&b, `<text x="%g" y="%.1f" text-anchor="end">%d</text>`, left-6, begin+h*float64(i)+(h+9)/2,
				i*len(r.OutOfPlaceIter.Ranks)/len(field))
		}
		for k, us := range row {
			shade := 0.08
			if high > low {
				shade += 0.92 * min(max((us-low)/(high-low), 0), 1)
			}
			fmt.Fprintf(&b, `<rect x="%.2f" y="%.1f" width="%.2f" height="%g" fill-opacity="%.2f"/>`, left+float64(k)*wide,
				begin+h*float64(i), wide+0.3, h-1, shade)
		}
	}
	fmt.Fprintf(&b, `<text x="%g" y="%.1f">iteration 0</text><text x="%g" y="%.1f" text-anchor="end">%d</text>`,
		left, begin+h*float64(len(field))+22, width-right, begin+h*float64(len(field))+22, len(r.OutOfPlaceIter.Ranks[0])-1)
	return &figure{name: name, title: "time of each rank by iteration, " + title, shapes: b.String(),
		height: begin + h*float64(len(field)) + 30, note: note, class: ` class="heat"`,
		caption: fmt.Sprintf("Each rank's time, iteration by iteration, at %s out of place: the stronger, the longer, from %s to %s.", sizeOf(float64(r.Size)), micros(low), micros(high))}
}

// shrink keeps the largest of what falls together.
func shrink(ranks [][]float64, rows, columns int) [][]float64 {
	rows, columns = min(rows, len(ranks)), min(columns, len(ranks[0]))
	field := make([][]float64, rows)
	for i := range field {
		field[i] = make([]float64, columns)
	}
	for r, times := range ranks {
		for k, us := range times {
			at := &field[r*rows/len(ranks)][min(k*columns/len(ranks[0]), columns-1)]
			*at = max(*at, us)
		}
	}
	return field
}
