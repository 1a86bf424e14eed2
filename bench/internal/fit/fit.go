package fit

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/bench/internal/stat"
)

// Point is one measurement.
type Point struct {
	Size      float64 // bytes
	Time      float64 // microseconds
	Algorithm string
	Shape
}

// message is the size of the messages.
func (p Point) message() float64 { return p.Part * p.Size }

// line is alpha + beta m for messages from a size on.
type line struct {
	from        float64
	alpha, beta stat.Interval
	misfit      float64 // the sum of squares of the relative errors
}

// Links is what a fit finds: the time of one message, by its size. Libraries send
// short and long messages in different ways, so there may be two lines.
type Links struct {
	Op    string
	Ranks int
	Hosts int
	Split string // what made groups of the ranks; Ranks and Hosts are those of one
	lines []line // one or two

	Points []Point
}

// Alpha is the latency, in microseconds: that of the shortest messages.
func (l *Links) Alpha() stat.Interval { return l.lines[0].alpha }

// Beta is the time per byte, in microseconds: that of the longest messages.
func (l *Links) Beta() stat.Interval { return l.lines[len(l.lines)-1].beta }

// Switch is the size from which messages are sent in another way, 0 if all are alike.
func (l *Links) Switch() float64 { return l.lines[len(l.lines)-1].from }

// Time is what a shape takes on size bytes.
func (l *Links) Time(s Shape, size float64) float64 {
	if s.Messages == 0 {
		return 0
	}
	use := l.lines[0]
	if s.Part*size >= l.Switch() {
		use = l.lines[len(l.lines)-1]
	}
	return s.Messages*use.alpha.Estimate + s.Volume*size*use.beta.Estimate
}

// fewest points make a line that says something, and twice as many two lines.
const fewest = 4

// hostsOf is on how many hosts the group is whose calls were measured: all ranks without -split, else rank 0's
// group. Files that do not say so have the hosts' names.
func hostsOf(c *report.Config) (int, error) {
	switch {
	case c.GroupHosts > 0:
		return c.GroupHosts, nil
	case c.Split == "" || c.Hosts <= 1:
		return c.Hosts, nil
	case c.Split == "node":
		return 1, nil
	}
	all, group := map[string]bool{}, map[string]bool{}
	for _, d := range c.Devices {
		if all[d.Host] = true; d.Group == c.Devices[0].Group {
			group[d.Host] = true
		}
	}
	if len(all) != c.Hosts { // hosts that ranks only act as have no names of their own
		return 0, fmt.Errorf("the run has -split %s, and does not say on how many hosts a group is; measure it anew", c.Split)
	}
	return len(group), nil
}

// Of fits the curve of one operation in a run.
func Of(f *report.File, op string) (*Links, error) {
	l := &Links{Op: op, Ranks: cmp.Or(f.Config.GroupRanks, f.Config.Ranks), Split: f.Config.Split}
	var err error
	if l.Hosts, err = hostsOf(&f.Config); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	unknown := ""
	for _, r := range f.Results {
		if r.Op != op {
			continue
		}
		shape, known := shapeOf(op, r.Algorithm, l.Ranks, max(l.Hosts, 1))
		if !known {
			unknown = r.Algorithm
			continue
		}
		for _, us := range halves(&r) {
			if shape.Messages > 0 {
				l.Points = append(l.Points, Point{float64(r.Size), us, r.Algorithm, shape})
			}
		}
	}
	if len(l.Points) < fewest {
		if unknown != "" {
			return nil, fmt.Errorf("%s: it ran %q, %w: links can be fitted, and more ranks predicted, only where they carry a known algorithm, between hosts (-hosts 2, or several machines)", op, unknown, errUnknown)
		}
		return nil, fmt.Errorf("%s: %d lines are too few; measure at least %d sizes", op, len(l.Points), fewest)
	}
	return l, l.fit()
}

var errUnknown = errors.New("whose messages are not known")

// fit looks for the one line, or the two, that explain the points best.
func (l *Links) fit() error {
	slices.SortStableFunc(l.Points, func(a, b Point) int { return cmp.Compare(a.message(), b.message()) })
	whole, err := regress(l.Points)
	if err != nil {
		return fmt.Errorf("%s: %w", l.Op, err)
	}
	l.lines = []line{whole}
	if at, low, high := split(l.Points, information(whole.misfit, len(l.Points), 2), 1); at > 0 {
		high.from = l.Points[at].message()
		l.lines = []line{low, high}
	}
	return nil
}

// split finds the two lines that explain points best, which are in the order of their messages: those up to at, and the
// others, with at least so many sizes on each side. It is 0 where none is better than best.
func split(points []Point, best float64, distinct int) (at int, low, high line) {
	for i := fewest; i+fewest <= len(points); i++ {
		if points[i].message() == points[i-1].message() || sizes(points[:i]) < distinct || sizes(points[i:]) < distinct {
			continue
		}
		a, err1 := regress(points[:i])
		b, err2 := regress(points[i:])
		if err1 != nil || err2 != nil {
			continue
		}
		if c := information(a.misfit+b.misfit, len(points), 5); c < best {
			best, at, low, high = c, i, a, b
		}
	}
	return at, low, high
}

// information is Schwarz's criterion (1978): how badly a model fits, and a fine for
// each of its parameters.
func information(misfit float64, n, parameters int) float64 {
	return float64(n)*math.Log(max(misfit/float64(n), 1e-12)) + float64(parameters)*math.Log(float64(n))
}

var errLine = errors.New("the times do not grow with the size as latency plus bandwidth predict; measure more sizes, or a quieter machine")

// regress finds the line that the times follow, with relative errors as small as can
// be: least squares of (messages alpha + bytes beta - t) / t.
func regress(points []Point) (line, error) {
	var xx, xy, yy, x, y float64
	for _, p := range points {
		a, b := p.Messages/p.Time, p.Volume*p.Size/p.Time
		xx, xy, yy, x, y = xx+a*a, xy+a*b, yy+b*b, x+a, y+b
	}
	det := xx*yy - xy*xy
	if !(det > 1e-9*xx*yy) {
		return line{}, errLine
	}
	alpha, beta := (yy*x-xy*y)/det, (xx*y-xy*x)/det
	var l line
	for _, p := range points {
		e := 1 - (p.Messages*alpha+p.Volume*p.Size*beta)/p.Time
		l.misfit += e * e
	}
	half := 0.0
	if free := float64(len(points) - 2); free > 0 {
		half = stat.T(free, 0.95) * math.Sqrt(l.misfit/free)
	}
	da, db := half*math.Sqrt(yy/det), half*math.Sqrt(xx/det)
	l.alpha = stat.Interval{Estimate: alpha, Low: alpha - da, High: alpha + da}
	l.beta = stat.Interval{Estimate: beta, Low: beta - db, High: beta + db}
	if alpha < 0 && alpha+da < 0 || beta < 0 && beta+db < 0 {
		return line{}, errLine
	}
	l.alpha.Estimate, l.beta.Estimate = max(alpha, 0), max(beta, 0)
	return l, nil
}

// farthest is how many times the measured ranks an extrapolation may reach unless forced.
const farthest = 16

// Predicted is what a fit says of a size on another number of ranks.
type Predicted struct {
	Size      float64
	Algorithm string
	Time      float64 // microseconds
}

// To extrapolates to so many ranks: each size with the algorithm that it was measured with.
func (l *Links) To(ranks int, force bool) (rows []Predicted, err error) {
	if ranks > farthest*l.Ranks && !force {
		return nil, fmt.Errorf("-extrapolate %d: that is a guess, more than %d times the %d ranks that were measured; -force predicts it anyway", ranks, farthest, l.Ranks)
	}
	if ranks < 1 {
		return nil, fmt.Errorf("-extrapolate %d: a job has at least 1 rank", ranks)
	}
	hosts := max(ranks*max(l.Hosts, 1)/l.Ranks, 1)
	points := slices.Clone(l.Points)
	slices.SortStableFunc(points, func(a, b Point) int { return cmp.Compare(a.Size, b.Size) })
	for _, p := range slices.CompactFunc(points, func(a, b Point) bool { return a.Size == b.Size }) {
		shape, _ := shapeOf(l.Op, p.Algorithm, ranks, hosts)
		rows = append(rows, Predicted{p.Size, p.Algorithm, l.Time(shape, p.Size)})
	}
	return rows, nil
}
