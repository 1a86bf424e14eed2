package history

import (
	"encoding/csv"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
)

// CSV writes metrics as a table, all of them if none is named: a line for each step that has one of
// them, and of each metric the mean, under its name, and NAME.min, NAME.max and NAME.std over the
// ranks. What a step does not have is empty, as a validation loss is in most; numbers read back
// equal, and those that are not finite are NaN, Inf and -Inf. Of a run that has logged nothing it
// is the head of the table.
func (h *History) CSV(w io.Writer, names ...string) error {
	names, err := h.named("CSV", names)
	if err != nil {
		return err
	}
	steps := map[int]bool{}
	head := []string{stepKey}
	for _, name := range names {
		head = append(head, name, name+".min", name+".max", name+".std")
		for _, step := range h.series[name].steps {
			steps[step] = true
		}
	}
	out := csv.NewWriter(w)
	_ = out.Write(head)           // which Error tells, as of each line
	at := make([]int, len(names)) // in each series
	line := make([]string, len(head))
	for _, step := range slices.Sorted(maps.Keys(steps)) {
		line[0] = strconv.Itoa(step)
		for i, name := range names {
			cells := line[1+4*i:][:4]
			clear(cells)
			if r := h.series[name]; at[i] < len(r.steps) && r.steps[at[i]] == step {
				s := r.stats[at[i]]
				cells[0], cells[1], cells[2], cells[3] = cell(s.Mean), cell(s.Min), cell(s.Max), cell(s.Std)
				at[i]++
			}
		}
		_ = out.Write(line)
	}
	out.Flush()
	if err := out.Error(); err != nil {
		return fmt.Errorf("history: CSV: %w", err)
	}
	return nil
}

// named are the metrics of these names, of which all must be there, or all metrics.
func (h *History) named(what string, names []string) ([]string, error) {
	if len(names) == 0 {
		names = h.names
	}
	for _, name := range names {
		if h.series[name] == nil {
			return nil, fmt.Errorf("history: %s: %w: %q; there are %q", what, errNoMetric, name, h.names)
		}
	}
	return names, nil
}

// cell is x such that it reads back equal.
func cell(x float64) string {
	if math.IsInf(x, 1) {
		return "Inf"
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}
