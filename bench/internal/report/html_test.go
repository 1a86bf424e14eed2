package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/option"
)

// sampleFile is a run of n ranks with everything that a file can have.
func sampleFile(n int) *File {
	f := NewFile([]string{"bench", "-op", `"<script>alert(1)</script>`}, []string{"GOCCL_ALGO=ring", "MY_TOKEN=hidden"}, time.Unix(0, 0).UTC())
	o := option.Default()
	f.Goccl, f.Go, f.Startup, f.Fingerprint = "0.1.0", "go", &Startup{Join: 1, Comms: map[string]float64{"cpu": 2}}, map[string]string{"kernel": "6.1"}
	f.Config.Setup = Setup{Ranks: n, GroupRanks: n, Processes: n, Hosts: 1, Engine: "cpu", Transport: "shared memory", CPU: "Acme <9000>", Launcher: "started here",
		Ceiling: &Ceiling{12, "12 GB/s, found out"}}
	for r := range n {
		f.Config.Devices = append(f.Config.Devices, Place{Rank: r, Pid: 100 + r, Host: "h"})
	}
	f.Describe(&o)
	var s Summary
	for size := 8; size <= 1<<20; size *= 4 {
		us := 2 + float64(size)/5e3
		row := Row{Op: "allreduce", Size: size, Count: size / 4, Type: "float", Redop: "sum", Root: -1, Backend: "cpu", Algorithm: "ring",
			OutOfPlace: NewResult(size, us, 1), InPlace: NewResult(size, us*1.1, 1)}
		row.OutOfPlace.Wrong, row.InPlace.Wrong = ptr(int64(0)), ptr(int64(0))
		var ranks [][]float64
		for r := range n {
			var times []float64
			for i := range 30 {
				times = append(times, us*(1+float64((r*7+i*3)%10)/20))
			}
			ranks = append(ranks, times)
		}
		row.OutOfPlaceIter = NewPerIter(append([]float64{}, ranks[0]...), ranks, 0.5, 0)
		row.OutOfPlace.Slowest = &Straggler{Rank: n - 1, Host: "h", Late: 41.2, Rest: 2}
		f.Results = append(f.Results, row)
		s.Add(&row)
	}
	f.Close(&s, time.Unix(9, 0).UTC())
	return f
}

// wellFormed checks that a picture is XML.
func wellFormed(t *testing.T, svg string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		_, err := d.Token()
		if errors.Is(err, io.EOF) {
			return
		}
		require.NoError(t, err, svg)
	}
}

// The page needs nothing from anywhere, runs nothing, and is well-formed where it is drawn.
func TestHTML(t *testing.T) {
	var b bytes.Buffer
	require.NoError(t, sampleFile(3).HTML(&b))
	html := b.String()
	require.Contains(t, html, "<title>allreduce on 3 ranks of one host</title>")
	require.NotContains(t, html, "<script")
	require.NotContains(t, html, "hidden")
	require.NotRegexp(t, `(?i)(https?:|src=|href="[^d]|url\(|@import)`, html)
	require.Contains(t, html, "Content-Security-Policy")
	require.Equal(t, 5, strings.Count(html, "<polyline"), "two curves, and three with the tail")
	require.Contains(t, html, `class="ceiling"`)
	require.Contains(t, html, "Rank 2 on h came late to the barrier in 9 of 18 halves of lines, by 41.2 us at most.")
	require.Contains(t, html, "kernel")
	require.Contains(t, html, "$GOCCL_ALGO")
	for _, svg := range regexp.MustCompile(`(?s)<svg.*?</svg>`).FindAllString(html, -1) {
		wellFormed(t, svg)
		require.NotContains(t, svg, "NaN")
		require.NotContains(t, svg, "Inf")
	}
}

// Runs with little to show make a page, too.
func TestHTMLOfLittle(t *testing.T) {
	for _, change := range []func(f *File){
		func(f *File) { f.Results = nil },
		func(f *File) { f.Results = f.Results[:1] },
		func(f *File) { f.Config.Ceiling, f.Startup, f.Fingerprint = nil, nil, nil },
		func(f *File) {
			for i := range f.Results {
				r := &f.Results[i]
				r.Op, r.Size, r.OutOfPlaceIter, r.OutOfPlace.BusBW, r.InPlace.BusBW = "barrier", 0, nil, nil, nil
			}
		},
		func(f *File) { f.Errors = []string{"wrong data: rank 1"}; f.Limits = []string{"-min-busbw 9"} },
	} {
		f := sampleFile(1)
		change(f)
		var b bytes.Buffer
		require.NoError(t, f.HTML(&b))
		require.NotContains(t, b.String(), "NaN")
		require.Contains(t, b.String(), "</html>")
	}
}

// A backend that was measured twice has two curves, and remarks of its own; single things are not many.
func TestHTMLLanes(t *testing.T) {
	f := sampleFile(1)
	f.Config.Backends, f.Config.Ceiling = []string{"cpu", "cpu"}, &Ceiling{3, "3 GB/s, found out"}
	var twice []Row
	for _, r := range f.Results {
		again := r
		again.OutOfPlace.Time *= 3
		twice = append(twice, r, again)
	}
	f.Results = twice
	lanes := f.lanes(f.curves()[0])
	require.Len(t, lanes, 2)
	require.Equal(t, []string{"cpu 1", "cpu 2"}, []string{lanes[0].name, lanes[1].name})
	require.Len(t, lanes[1].rows, 9)
	var b bytes.Buffer
	require.NoError(t, f.HTML(&b))
	require.Equal(t, 10, strings.Count(b.String(), "<polyline"))
	require.Contains(t, b.String(), "allreduce float sum (cpu 2): the most is ")
	require.NotContains(t, b.String(), "longer than", "each lane by itself only grows")
	require.Contains(t, b.String(), "<summary>1 rank</summary>")
	require.Contains(t, b.String(), "allreduce on 1 rank of one host")
	require.Regexp(t, `No ceiling is drawn: [\d.]+ GB/s were measured, more than the estimate of 3 GB/s, found out\.`, b.String())
	require.NotContains(t, b.String(), `class="ceiling"`, "it lies below what was measured")
}

// What is said of a run is true of the half that it names, and the larger of both is what counts.
func TestWordsNameTheHalf(t *testing.T) {
	row := func(size int, out, in float64) Row {
		r := Row{Op: "allreduce", Type: "float", Redop: "sum", Root: -1, Size: size, OutOfPlace: NewResult(size, out, 1), InPlace: NewResult(size, in, 1)}
		r.OutOfPlaceIter, r.InPlaceIter = &PerIter{P50: out, P99: out}, &PerIter{P50: in, P99: in}
		return r
	}
	f := sampleFile(1)
	f.Config.Ceiling = &Ceiling{20, "20 GB/s, found out"}
	f.Results = []Row{row(1000, 2, 1), row(8000, 40, 4), row(80000, 20, 8), row(90000, 20, 11)}
	f.Results[1].InPlaceIter.P99 = 60
	reached, odd := f.remarks()
	require.Equal(t, []remark{{10, "allreduce float sum: the most is 10 GB/s, at 78.12 KiB in place, 50 % of the ceiling; the shortest call takes 1 us, at 1000 B in place."}}, reached)
	require.Equal(t, []remark{
		{15, "allreduce float sum: uneven in 1 of 8 half lines; at 7.812 KiB in place the 99th percentile is 60 us, the median 4 us."},
		{2, "allreduce float sum: 7.812 KiB takes 40 us out of place, longer than 78.12 KiB (20 us)."}}, odd)

	// The other half is larger: that one is told.
	for i := range f.Results {
		r := &f.Results[i]
		r.OutOfPlace, r.InPlace = r.InPlace, r.OutOfPlace
		r.OutOfPlaceIter, r.InPlaceIter = r.InPlaceIter, r.OutOfPlaceIter
	}
	reached, odd = f.remarks()
	require.Contains(t, reached[0].text, "the most is 10 GB/s, at 78.12 KiB out of place, 50 % of the ceiling; the shortest call takes 1 us, at 1000 B out of place.")
	require.Contains(t, odd[0].text, "at 7.812 KiB out of place")
	require.Contains(t, odd[1].text, "40 us in place")
}

// What qualifies all numbers travels with them: in the page, and in each figure that is saved.
func TestBusyTravels(t *testing.T) {
	f := sampleFile(2)
	f.Busy = "busy: the process of rank 1 on vm waits for a processor 40 % of the time, so times are longer, and vary"
	require.Equal(t, Word{"Busy: the process of rank 1 on vm waits for a processor 40 % of the time, so times are longer, and vary.", true}, f.Words()[0])
	for _, g := range f.figures() {
		text, _ := g.File()
		require.Contains(t, text, " Busy: ", g.name)
	}
}

var item = regexp.MustCompile(`<li[ >]`)

// Five remarks stand on top, all others below them; what a launcher sets for a single process is not shown.
func TestPageIsShort(t *testing.T) {
	f := operations(9)
	f.Env = []string{"GOCCL_ALGO=ring", "GOCCL_BLAME_FD=5:77", "GOCCL_HOSTID=host-0", "GOCCL_RANK=0", "GOCCL_ROOT=127.0.0.1:4000", "GOCCL_ROOT_FD=4", "GOCCL_SIZE=2"}
	var b bytes.Buffer
	require.NoError(t, f.HTML(&b))
	top, rest, ok := strings.Cut(b.String(), "<details>")
	require.True(t, ok)
	require.Len(t, item.FindAllString(top, -1), firstWords)
	require.Len(t, item.FindAllString(rest, -1), len(f.Words())-firstWords)
	require.Contains(t, rest, "$GOCCL_ALGO")
	require.Equal(t, 1, strings.Count(rest, "$GOCCL_"))
}

// Several operations have a figure together, of the larger halves; what is too many for it is counted.
func TestOverview(t *testing.T) {
	f := operations(9)
	g := f.charts()[0].Figures[0]
	require.Equal(t, "all-busbw", g.name)
	require.Equal(t, 9, strings.Count(g.shapes, "<polyline"))
	require.Len(t, g.entries, 9)
	seen := map[string]bool{}
	for _, e := range g.entries {
		require.False(t, seen[e.class], e.class)
		seen[e.class] = true
	}
	require.Contains(t, g.caption, "the larger of both halves")
	g = operations(14).charts()[0].Figures[0]
	require.Equal(t, mostTogether, strings.Count(g.shapes, "<polyline"))
	require.Contains(t, g.caption, "2 lines are too many")
	require.Len(t, sampleFile(1).charts(), 1, "one operation needs none")
}

// A single size has bars, each with its value, and no curves.
func TestBars(t *testing.T) {
	f := sampleFile(2)
	f.Results = f.Results[3:4]
	for _, g := range f.chart(f.curves()[0]).Figures[:2] {
		require.NotContains(t, g.shapes, "<polyline")
		require.Contains(t, g.shapes, "at 512 B</text>")
		require.Contains(t, g.shapes, ">out of place</text>")
		require.Contains(t, g.shapes, ">in place</text>")
		require.NotContains(t, g.caption, "by size")
	}
	time := f.chart(f.curves()[0]).Figures[1]
	require.Contains(t, time.shapes, ">2.102 us</text>")
	require.Contains(t, time.shapes, ">2.313 us</text>", "in place")
	require.Equal(t, 3, strings.Count(time.shapes, "<rect"))
}

// operations is a run of so many.
func operations(n int) *File {
	f := sampleFile(2)
	one := f.Results
	f.Results = nil
	for i := range n {
		for _, r := range one {
			r.Op, r.Root = []string{"allreduce", "reducescatter", "allgather", "broadcast", "reduce", "alltoall", "gather", "scatter", "sendrecv"}[i%9], i/9-1
			us := r.OutOfPlace.Time * (1 + float64(i)/7)
			r.OutOfPlace, r.InPlace = NewResult(r.Size, us, 1), NewResult(r.Size, us*1.1, 1)
			iter := *r.OutOfPlaceIter
			iter.P99 = 9 * iter.P50 * float64(i+1)
			r.OutOfPlaceIter = &iter
			f.Results = append(f.Results, r)
		}
	}
	return f
}

// The worst is told first, and not without an end.
func TestWordsAreFew(t *testing.T) {
	f := sampleFile(1)
	f.Results = f.Results[:0]
	for i := range 60 {
		us := 10.0
		if i%2 == 0 {
			us = 100 + float64(i)
		}
		f.Results = append(f.Results, Row{Op: "allreduce", Type: "float", Redop: "sum", Root: -1, Size: 8 * (i + 1), OutOfPlace: NewResult(8*(i+1), us, 1), InPlace: NewResult(8*(i+1), us, 1)})
	}
	words := f.Words()
	require.Len(t, words, 2)
	require.Equal(t, "allreduce float sum: 60 half lines take longer than the next larger size; the worst: 472 B takes 158 us out of place, longer than 480 B (10 us).", words[1].Text)

	for i := range f.Results {
		f.Results[i].Root = i / 4 % 20 // a curve each, of which mostCurves are looked at
	}
	words = f.Words()
	require.Contains(t, words, Word{"And 7 more remarks of that kind: see the curves.", true})
}

func TestTicks(t *testing.T) {
	require.Equal(t, []float64{0, 2, 4, 6, 8, 10}, (&plot{}).ticks(0, 11))
	require.Equal(t, []float64{1, 10, 100}, (&plot{log: true}).ticks(1, 100))
	require.Equal(t, "1 MiB", sizeOf(1<<20))
	require.Equal(t, "8 B", sizeOf(8))
	require.Equal(t, []string{"1000", "10k", "1M"}, []string{label(1e3), label(1e4), label(1e6)})
	require.Equal(t, []string{"1.5 us", "20 ms", "3 s"}, []string{micros(1.5), micros(2e4), micros(3e6)})
}

func TestShrink(t *testing.T) {
	field := shrink([][]float64{{1, 2, 3, 4}, {5, 6, 7, 8}, {9, 1, 1, 1}}, 2, 2)
	require.Len(t, field, 2)
	require.Equal(t, []float64{6, 8}, field[0])
	require.Equal(t, []float64{9, 1}, field[1])
}
