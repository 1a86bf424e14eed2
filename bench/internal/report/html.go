package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/bench/internal/prose"
	"github.com/goccl/goccl/internal/environ"
)

//go:embed report.html
var page string

var pageTemplate = template.Must(template.New("report").Parse(page))

// sheet is what the page shows.
type sheet struct {
	File    *File
	Title   string
	Command string
	Words   []Word // the first few, and
	More    []Word // the others
	Charts  []chart
	Rows    [][]string
	Facts   []fact
	Places  []Place
	Style   template.CSS
}

type fact struct{ Name, Value string }

// chart is one curve's pictures.
type chart struct {
	Title   string
	Figures []*figure
}

// mostShown are the ranks that the page lists, and firstWords the remarks that stand above its figures.
const (
	mostShown  = 256
	firstWords = 5
)

// HTML writes f as a page that needs nothing else: no network, no scripts.
func (f *File) HTML(w io.Writer) error {
	words := f.Words()
	first := min(len(words), firstWords)
	s := sheet{Style: template.CSS(figureStyle), File: f, Command: strings.Join(f.Args, " "), Words: words[:first],
		More:   words[first:],
		Charts: f.charts(), Facts: f.facts(), Places: f.Config.Devices[:min(len(f.Config.Devices), mostShown)]}
	var ops []string
	for _, c := range f.curves() {
		if !slices.Contains(ops, c.op) {
			ops = append(ops, c.op)
		}
	}
	hosts := "one host"
	if f.Config.Hosts > 1 {
		hosts = fmt.Sprintf("%d hosts", f.Config.Hosts)
	}
	what := strings.Join(ops, ", ")
	if len(ops) > 3 {
		what = fmt.Sprintf("%d operations", len(ops))
	}
	s.Title = fmt.Sprintf("%s on %s of %s", what, prose.Count(f.Config.Ranks, "rank"), hosts)
	for _, r := range f.Results {
		s.Rows = append(s.Rows, cells(&r))
	}
	return pageTemplate.Execute(w, s)
}

// Count is the same for the page.
func (s sheet) Count(n int, what string) string { return prose.Count(n, what) }

// curve is the lines of one operation, type, operator and root.
type curve struct {
	op, typ, redop string
	root           int
	rows           []Row
}

func (c *curve) title() string {
	words := []string{c.op}
	for _, word := range []string{c.typ, c.redop} {
		if word != "none" {
			words = append(words, word)
		}
	}
	if c.root >= 0 {
		words = append(words, "root "+strconv.Itoa(c.root))
	}
	return strings.Join(words, " ")
}

// mostCurves are shown: more are a table's business.
const mostCurves = 24

// curves are f's results, line by line of the first cycle, by what they measure.
func (f *File) curves() (cs []*curve) {
	for _, r := range f.Results {
		if r.Cycle != f.Results[0].Cycle {
			continue
		}
		i := slices.IndexFunc(cs, func(c *curve) bool {
			return c.op == r.Op && c.typ == r.Type && c.redop == r.Redop && c.root == r.Root
		})
		if i < 0 {
			if len(cs) == mostCurves {
				continue
			}
			i = len(cs)
			cs = append(cs, &curve{op: r.Op, typ: r.Type, redop: r.Redop, root: r.Root})
		}
		cs[i].rows = append(cs[i].rows, r)
	}
	return cs
}

// lane is a curve's rows on one backend.
type lane struct {
	name string // with a number where there are several of one name; "" where there is one lane
	rows []Row
}

// lanes are c's rows by backend, one of which may have been measured twice, to see what is noise.
func (f *File) lanes(c *curve) (lanes []lane) {
	n := max(len(f.Config.Backends), 1)
	for i, r := range c.rows[:min(n, len(c.rows))] {
		l := lane{name: r.Backend}
		if slices.Index(f.Config.Backends, r.Backend) != i || slices.Contains(f.Config.Backends[i+1:], r.Backend) {
			l.name = fmt.Sprintf("%s %d", r.Backend, i+1)
		}
		for k := i; k < len(c.rows); k += n {
			l.rows = append(l.rows, c.rows[k])
		}
		lanes = append(lanes, l)
	}
	if len(lanes) == 1 {
		lanes[0].name = ""
	}
	return lanes
}

// charts are the pictures of all curves, each by itself, after one that has all of them, if there are several.
func (f *File) charts() (all []chart) {
	curves := f.curves()
	if len(curves) > 1 {
		all = append(all, f.overview(curves))
	}
	for _, c := range curves {
		all = append(all, f.chart(c))
	}
	return all
}

// overview is the bus bandwidth of all curves in one picture, of each size the larger of both halves.
func (f *File) overview(curves []*curve) chart {
	p := plot{title: "bus bandwidth of all operations", axis: "bus bandwidth", unit: "GB/s"}
	for _, c := range curves {
		for _, l := range f.lanes(c) {
			s := series{name: strings.TrimSpace(c.title() + " " + l.name), color: len(p.series)}
			for i := range l.rows {
				best := math.Inf(-1)
				for _, h := range l.rows[i].Halves() {
					if h.BusBW != nil {
						best = max(best, *h.BusBW)
					}
				}
				if l.rows[i].Size > 0 && !math.IsInf(best, 0) {
					s.x, s.y = append(s.x, float64(l.rows[i].Size)), append(s.y, best)
				}
			}
			if len(s.x) > 0 {
				p.series = append(p.series, s)
			}
		}
	}
	caption := "Bus bandwidth by size, of each size the larger of both halves, out of place and in place."
	if p.single() {
		caption = "Bus bandwidth, the larger of both halves, out of place and in place."
	}
	if more := len(p.series) - mostTogether; more > 0 {
		p.series = p.series[:mostTogether]
		caption += fmt.Sprintf(" %s for this figure; the others follow.", tooMany(more))
	}
	return chart{Title: "All operations", Figures: []*figure{p.figure("all-busbw", caption, f.qualified())}}
}

func tooMany(n int) string {
	if n == 1 {
		return "One line is too many"
	}
	return fmt.Sprintf("%d lines are too many", n)
}

// qualified is what a figure says that is shown without the page.
func (f *File) qualified() string {
	if f.Busy == "" {
		return ""
	}
	return sentence(f.Busy) + "."
}

func (f *File) chart(c *curve) chart {
	ch := chart{Title: c.title()}
	var bus, time []series
	spread := false
	for b, l := range f.lanes(c) {
		name := func(what string) string { return strings.TrimSpace(l.name + " " + what) }
		color := 2 * b % 6
		out, in := series{name: name("out of place"), color: color}, series{name: name("in place"), color: color + 1}
		outTime, inTime, tail := out, in, series{name: name("99th percentile, out of place"), color: color, dotted: true}
		for _, r := range l.rows {
			if r.Size == 0 {
				continue
			}
			add := func(s *series, y *float64) {
				if y != nil {
					s.x, s.y = append(s.x, float64(r.Size)), append(s.y, *y)
				}
			}
			add(&out, r.OutOfPlace.BusBW)
			add(&in, r.InPlace.BusBW)
			add(&outTime, &r.OutOfPlace.Time)
			add(&inTime, &r.InPlace.Time)
			if r.OutOfPlaceIter != nil {
				add(&tail, &r.OutOfPlaceIter.P99)
				spread = true
			}
		}
		bus, time = append(bus, out, in), append(time, outTime, inTime, tail)
	}
	p := plot{title: "bus bandwidth of " + ch.Title, axis: "bus bandwidth", unit: "GB/s", series: bus}
	caption := "Bus bandwidth by size."
	if p.single() {
		caption = "Bus bandwidth."
	}
	if f.Config.Ceiling != nil && c.op != "barrier" {
		beyond := 0.0
		for _, s := range bus {
			beyond = max(beyond, slices.Max(append(s.y, 0)))
		}
		if f.Config.Ceiling.Bandwidth >= beyond {
			p.ceiling = f.Config.Ceiling.Bandwidth
			caption += " Dashed, the ceiling: " + f.Config.Ceiling.What + "."
		} else {
			caption += fmt.Sprintf(" No ceiling is drawn: %.4g GB/s were measured, more than the estimate of %s.", beyond,
				f.Config.Ceiling.What)
		}
	}
	times := plot{title: "time of " + ch.Title, axis: "time of a call", unit: "us", log: true, series: time}
	timeCaption, tail := "Time of a call by size, both axes logarithmic.", "Dotted"
	if times.single() {
		timeCaption, tail = "Time of a call.", "Pale"
	}
	if spread {
		timeCaption += " " + tail + ": the 99th percentile of single iterations out of place. They are timed in a pass of their own, so it may lie below the mean."
	}
	name := strings.ReplaceAll(ch.Title, " ", "-")
	ch.Figures = append(ch.Figures, p.figure(name+"-busbw", caption, f.qualified()),
		times.figure(name+"-time", timeCaption, f.qualified()))
	for _, r := range slices.Backward(c.rows) {
		if r.OutOfPlaceIter != nil && len(r.OutOfPlaceIter.Ranks) > 1 {
			ch.Figures = append(ch.Figures, heatOf(name+"-ranks", ch.Title, &r, f.qualified()))
			break
		}
	}
	return ch
}

// cells are a line of the page's table.
func cells(r *Row) []string {
	cells := []string{r.Op, strconv.Itoa(r.Size), r.Type, r.Redop, strconv.Itoa(r.Root)}
	for _, half := range r.Halves() {
		p99 := ""
		if half.Iter != nil {
			p99 = fit(half.Iter.P99, 8)
		}
		cells = append(cells, fit(half.Time, 8), half.bus(7), p99, half.wrong())
	}
	return append(cells, strings.TrimSpace(r.Backend+" "+r.Algorithm))
}

// Here says of a run that bench has started its ranks itself.
const Here = "started here"

// placed are the variables that say to such ranks where they are.
var placed = []string{environ.Root.Name, environ.Size.Name, environ.HostID.Name}

// facts are the lines of the page's environment.
func (f *File) facts() []fact {
	c := &f.Config
	facts := []fact{
		{"ranks", fmt.Sprintf("%d, processes: %d, hosts: %d, %s", c.Ranks, c.Processes, c.Hosts, c.Launcher)},
		{"engine", c.Engine + ", " + c.Transport},
		{"processor", c.CPU},
		{"iterations", fmt.Sprintf("%s, %d warm-up, %s each, %d checked", f.iters, c.Warmup, prose.Count(c.Agg, "call"),
			c.Check)},
	}
	if s := f.Startup; s != nil {
		facts = append(facts, fact{"start-up", strings.TrimPrefix(strings.TrimSpace(s.line()), "#\n# Start-up: ")})
	}
	if c.Split != "" {
		facts = append(facts, fact{"groups", fmt.Sprintf("%s, %d ranks in the first", c.Split, c.GroupRanks)})
	}
	for _, name := range slices.Sorted(maps.Keys(f.Fingerprint)) {
		facts = append(facts, fact{name, f.Fingerprint[name]})
	}
	for _, e := range f.Env {
		name, value, _ := strings.Cut(e, "=")
		if v := environ.Known(name); v != nil && (v.Own || c.Launcher == Here && slices.Contains(placed, name)) {
			continue
		}
		facts = append(facts, fact{"$" + name, value})
	}
	return facts
}
