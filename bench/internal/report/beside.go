package report

import (
	"fmt"
	"strings"
)

// Beside writes the curves of several backends, which were measured in turns, side by
// side: busbw out of place, and each in relation to the first. Rows are in the order
// of sizes, and of the backends within each.
func Beside(rows []*Row, backends []string) string {
	var b strings.Builder
	b.WriteString("#\n# busbw (GB/s) out of place\n#       size")
	for i, name := range backends {
		fmt.Fprintf(&b, "  %8s", name)
		if i > 0 {
			fmt.Fprintf(&b, " %7s", "")
		}
	}
	b.WriteString("\n")
	for len(rows) >= len(backends) {
		fmt.Fprintf(&b, "#%11d", rows[0].Size)
		first := rows[0].OutOfPlace
		for i := range backends {
			r := rows[i].OutOfPlace
			fmt.Fprintf(&b, "  %8s", r.bus(8))
			switch {
			case i > 0 && r.Time > 0:
				fmt.Fprintf(&b, " %7s", fmt.Sprintf("x%.2f", first.Time/r.Time))
			case i > 0:
				fmt.Fprintf(&b, " %7s", "")
			}
		}
		b.WriteString("\n")
		rows = rows[len(backends):]
	}
	return b.String()
}

// Line says what a whole step took.
func (s *Step) Line() string {
	spread := ""
	if s.Iter.Min < s.Iter.Max {
		spread = fmt.Sprintf(" (from %s to %s)", ms(s.Iter.Min), ms(s.Iter.Max))
	}
	return fmt.Sprintf("#\n# step: %s of %s on %d ranks: %d calls, %.4g MB: %s%s\n",
		s.Scheme, s.Model, s.Ranks, s.Calls, float64(s.Bytes)/1e6, ms(s.Time), spread)
}
