package option

import (
	"fmt"
	"slices"
	"strings"

	"github.com/goccl/goccl/bench/internal/model"
)

// Length is one entry of -sizes: so many bytes, or so many elements.
type Length struct{ Bytes, Elements int }

// lengths reads -sizes: a comma list of sizes and of models.
func lengths(s string) (all []Length, err error) {
	for _, word := range strings.Split(s, ",") {
		if m := model.Named(strings.ToLower(word)); m != nil {
			for _, n := range m.Sizes() {
				all = append(all, Length{Elements: n})
			}
			continue
		}
		n, err := ParseSize(word)
		if err != nil {
			if m := Nearest(strings.ToLower(word), model.Names()); m != "" {
				err = fmt.Errorf("no such model; did you mean %s?", m)
			}
			return nil, fmt.Errorf("%q: %w (models: %s)", word, err, strings.Join(model.Names(), " "))
		}
		all = append(all, Length{Bytes: n})
	}
	return all, nil
}

// Sizes are the sizes to measure, in bytes, of elements of elem bytes each.
func (o Options) Sizes(elem int) []int {
	var s []int
	for _, l := range o.Lengths {
		s = append(s, l.Bytes+l.Elements*elem)
	}
	if s != nil {
		return s
	}
	for n := o.Min; n <= o.Max; {
		s = append(s, n)
		next := n + o.Step
		if o.Factor > 0 {
			next = n * o.Factor
			if n > o.Max/o.Factor {
				break
			}
		}
		if next <= n {
			break
		}
		n = next
	}
	return s
}

// Largest is the largest size of any type that is asked for, or of a call of -plan on so many ranks, in bytes.
func (o Options) Largest(ranks int) int {
	largest := slices.Max(append(o.stepSizes(ranks), 0))
	for _, t := range o.Types {
		if o.Plan == "" {
			largest = max(largest, slices.Max(append(o.Sizes(t.Size()), 0)))
		}
	}
	return largest
}

// stepSizes are those of the calls of -plan on so many ranks, in bytes.
func (o Options) stepSizes(ranks int) (sizes []int) {
	if o.Plan == "" {
		return nil
	}
	elem := o.Types[0].Size()
	calls, _ := model.Named(o.Model).Step(o.Plan, ranks, elem) // fit has refused what has no calls
	for _, c := range calls {
		sizes = append(sizes, c.Elements*elem)
	}
	return sizes
}

// Span is the smallest and the largest size that is measured on so many ranks, in bytes, and how one leads to
// the next: 2(factor).
func (o Options) Span(ranks int) (least, most int, step string) {
	var sizes []int
	switch {
	case o.Plan != "":
		sizes, step = o.stepSizes(ranks), "0("+o.Plan+")"
	case len(o.Lengths) > 0:
		sizes, step = o.Sizes(o.Types[0].Size()), "0(list)"
	case o.Factor == 0:
		return o.Min, o.Max, fmt.Sprintf("%d(bytes)", o.Step)
	default:
		return o.Min, o.Max, fmt.Sprintf("%d(factor)", o.Factor)
	}
	if len(sizes) == 0 {
		return 0, 0, step // a step of one rank has no calls
	}
	return slices.Min(sizes), slices.Max(sizes), step
}
