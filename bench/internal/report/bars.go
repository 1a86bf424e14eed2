package report

import (
	"fmt"
	"html/template"
	"strings"
)

// A bar has its name above it and its value to the right, each in a line of its own: letters are
// larger where the window is narrow, and names are long.
const (
	barRow   = 52.0  // from one bar to the next
	barHigh  = 14.0  // the bar itself
	barBegin = 12.0  // where bars begin, from the left
	barValue = 170.0 // what is left for a value
)

// single reports whether p shows one size alone, of which a curve would be a dot.
func (p *plot) single() bool {
	low, high, _, _ := p.ranges()
	return high > 0 && low == high
}

// bars draws p into f as a bar for each of its series.
func (p *plot) bars(f *figure) {
	at, _, _, _ := p.ranges()
	most := p.ceiling
	for _, s := range p.series {
		for _, y := range s.y {
			most = max(most, y)
		}
	}
	long := func(y float64) float64 { return (width - barBegin - barValue) * y / most }
	var b strings.Builder
	fmt.Fprintf(&b, `<text x="%g" y="22">%s (%s) at %s</text>`, barBegin, p.axis, p.unit, sizeOf(at))
	y := top
	for _, s := range p.series {
		if len(s.x) == 0 {
			continue
		}
		class := fmt.Sprintf("d%d", s.color%6)
		if s.dotted {
			class += " tail"
		}
		last := s.y[len(s.y)-1]
		fmt.Fprintf(&b, `<text x="%g" y="%g">%s</text><rect class="%s" x="%g" y="%g" width="%.1f" height="%g"/><text x="%.1f" y="%g">%s %s</text>`,
			barBegin, y+20, template.HTMLEscapeString(s.name), class, barBegin, y+31, long(last), barHigh, barBegin+long(last)+
				6, y+31+barHigh-1, label(last), p.unit)
		y += barRow
	}
	if p.ceiling > 0 {
		x := barBegin + long(p.ceiling)
		fmt.Fprintf(&b, `<line class="ceiling" x1="%.1f" x2="%.1f" y1="%g" y2="%g"><title>%s %s</title></line>`, x, x, top,
			y, label(p.ceiling), p.unit)
		f.entries = append(f.entries, entry{"ceiling", "ceiling"})
	}
	f.shapes, f.height = b.String(), y+8
}
