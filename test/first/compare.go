package main

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/goccl/goccl/test/internal/measure"
)

// file is what is read of bench's -J.
type file struct {
	Results []struct {
		Size int  `json:"size"`
		Out  half `json:"out_of_place"`
		In   half `json:"in_place"`
	} `json:"results"`
}

type half struct {
	Time float64 `json:"time"` // us
}

type runs []*file

// key is one half of a row.
type key struct {
	size int
	half string
}

// medians has the median over the runs of each half of each row.
func (rs runs) medians() map[key]float64 {
	times := map[key][]float64{}
	for _, f := range rs {
		for _, r := range f.Results {
			times[key{r.Size, "out"}] = append(times[key{r.Size, "out"}], r.Out.Time)
			times[key{r.Size, "in"}] = append(times[key{r.Size, "in"}], r.In.Time)
		}
	}
	found := map[key]float64{}
	for k, t := range times {
		found[k], _, _ = measure.Median(t)
	}
	return found
}

// line compares the medians of one half of a row.
type line struct {
	key
	quick, long float64 // us
}

func (l line) ratio() float64 { return l.quick / l.long }

// good reports whether the default run's median lies within the limit of the other run's.
func (l line) good() bool { return math.Abs(l.ratio()-1) <= within }

// compare has a line for each half of a row, by size; NaN where one side has none.
func compare(quick, long runs) (lines []line) {
	q, l := quick.medians(), long.medians()
	keys := maps.Clone(q)
	maps.Copy(keys, l)
	at := func(m map[key]float64, k key) float64 {
		if t, ok := m[k]; ok {
			return t
		}
		return math.NaN()
	}
	for k := range keys {
		lines = append(lines, line{k, at(q, k), at(l, k)})
	}
	slices.SortFunc(lines, func(a, b line) int { return cmp.Or(a.size-b.size, -cmp.Compare(a.half, b.half)) })
	return lines
}
