package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/internal/plain"
)

// The file as it is written: the fields of nccl-tests' version 3, each with its type there, where many a number and all
// truth values are strings. What is goccl's own stands in each object under the one key goccl.

// theirFile is the file.
type theirFile struct {
	Version     int         `json:"version"`
	StartTime   string      `json:"start_time"`
	Args        []string    `json:"args"`
	Env         []string    `json:"env"`
	NCCL        int         `json:"nccl_version"`
	Config      theirConfig `json:"config"`
	Results     []theirRow  `json:"results"`
	OutOfBounds struct {
		Count int64 `json:"count"`
		OK    text  `json:"okay"`
	} `json:"out_of_bounds"`
	Average struct {
		Bandwidth amount `json:"bandwidth"`
		OK        text   `json:"okay"`
	} `json:"average_bus_bandwidth"`
	Errors  []string `json:"errors"`
	EndTime string   `json:"end_time"`
	Goccl   *ourFile `json:"goccl,omitempty"`
}

type ourFile struct {
	Schema      string            `json:"schema"`
	Goccl       string            `json:"version"`
	Go          string            `json:"go_version"`
	Config      Setup             `json:"config"`
	Startup     *Startup          `json:"startup,omitempty"`
	Step        *Step             `json:"step,omitempty"`
	Skipped     []string          `json:"skipped"`
	Fingerprint map[string]string `json:"fingerprint,omitempty"`
	Limits      []string          `json:"limits_missed"`
	Busy        string            `json:"busy,omitempty"`
}

type theirConfig struct {
	Threads  int     `json:"nthreads"`
	GPUs     int     `json:"ngpus"`
	Min      int     `json:"minimum_bytes"`
	Max      int     `json:"maximum_bytes"`
	Factor   *int    `json:"step_factor,omitempty"` // one of the two
	Step     *int    `json:"step_bytes,omitempty"`
	Warmup   int     `json:"warmup_iters"`
	Iters    int     `json:"iterations"`
	Agg      int     `json:"aggregated_iterations"`
	Check    int     `json:"validation"`
	Graph    int     `json:"graph"`
	Blocking text    `json:"blocking_collectives"`
	Each     text    `json:"per_iter_timing"`
	Skip     int     `json:"per_iter_skip"`
	Parallel text    `json:"parallel_init"`
	Devices  []Place `json:"devices"`
}

type theirRow struct {
	Size           int        `json:"size"`
	Count          int        `json:"count"`
	Type           string     `json:"type"`
	Redop          string     `json:"redop"`
	Root           text       `json:"root"`
	OutOfPlace     *theirHalf `json:"out_of_place"`
	OutOfPlaceIter *theirIter `json:"out_of_place_per_iter,omitempty"`
	InPlace        *theirHalf `json:"in_place"`
	InPlaceIter    *theirIter `json:"in_place_per_iter,omitempty"`
	Iterations     int        `json:"actual_iterations"`
	Experiment     string     `json:"experiment_name"`
	Goccl          *ourRow    `json:"goccl,omitempty"`
}

type ourRow struct {
	Op         string   `json:"op"`
	Backend    string   `json:"backend,omitempty"`
	Algorithm  string   `json:"algorithm,omitempty"`
	Cycle      int      `json:"cycle,omitempty"`
	Time       string   `json:"timestamp,omitempty"`
	Calls      int      `json:"calls,omitempty"`
	Overlap    *Overlap `json:"overlap,omitempty"`
	OutOfPlace ourHalf  `json:"out_of_place"`
	InPlace    ourHalf  `json:"in_place"`
}

type theirHalf struct {
	Time    amount   `json:"time"`
	CPUTime amount   `json:"cpu_time,omitempty"` // theirs with -C 1, in place of time
	AlgBW   amount   `json:"alg_bw"`
	BusBW   amount   `json:"bus_bw"` // 0 where it has no meaning
	Wrong   *float64 `json:"nwrong"`
}

type ourHalf struct {
	TimeMin float64    `json:"time_min"`
	TimeAvg float64    `json:"time_avg"`
	TimeMax float64    `json:"time_max"`
	First   float64    `json:"first_call_us,omitempty"`
	Skew    float64    `json:"skew_us,omitempty"` // of the iterations
	Slowest *Straggler `json:"slowest,omitempty"`
}

type theirIter struct {
	Skipped int         `json:"skipped_iterations"`
	Min     float64     `json:"min_us"`
	Max     float64     `json:"max_us"`
	Avg     float64     `json:"avg_us"`
	P50     float64     `json:"p50_us"`
	P95     float64     `json:"p95_us"`
	P99     float64     `json:"p99_us"`
	Stdev   float64     `json:"stdev_us"`
	CV      float64     `json:"cv_pct"`
	Times   []float64   `json:"times_us"`
	Ranks   [][]float64 `json:"per_process_max_times_us,omitempty"`
}

// text is a string, as which nccl-tests writes truth values and roots. Other programs' numbers and
// truth values are read.
type text string

func (t *text) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(t))
	}
	*t = text(b)
	return nil
}

func truth(b bool) text { return text(strconv.FormatBool(b)) }

// amount is a number, for which nccl-tests may write "nan"; that is read as 0.
type amount float64

func (a *amount) UnmarshalJSON(b []byte) error {
	if string(b) == `"nan"` {
		*a = 0
		return nil
	}
	return json.Unmarshal(b, (*float64)(a))
}

// theirs is f as it is written.
func (f *File) theirs() *theirFile {
	c := &f.Config
	t := &theirFile{Version: f.Version, StartTime: f.StartTime, Args: f.Args, Env: f.Env, NCCL: f.NCCL, Errors: f.Errors,
		EndTime: f.EndTime,
		Config: theirConfig{Threads: c.Threads / max(c.PerThread, 1), GPUs: max(c.PerThread, 1), Min: c.Min, Max: c.Max,
			Warmup: c.Warmup, Iters: c.Iters,
			Agg: c.Agg, Check: c.Check, Graph: c.Graph, Blocking: truth(c.Blocked), Each: truth(c.Each), Skip: c.Skip,
			Parallel: "true", Devices: c.Devices},
		Results: []theirRow{},
		Goccl: &ourFile{Schema: Schema, Goccl: f.Goccl, Go: f.Go, Startup: f.Startup, Step: f.Step, Skipped: f.Skipped,
			Fingerprint: f.Fingerprint, Limits: f.Limits, Busy: f.Busy,
			Config: c.Setup},
	}
	if c.Factor > 1 {
		t.Config.Factor = &c.Factor
	} else {
		t.Config.Step = &c.Step
	}
	t.OutOfBounds.Count, t.OutOfBounds.OK = f.OutOfBounds.Count, truth(f.OutOfBounds.OK)
	t.Average.Bandwidth, t.Average.OK = amount(f.Average.Bandwidth), text(fmt.Sprint(f.Average.OK))
	for i := range f.Results {
		t.Results = append(t.Results, f.Results[i].theirs())
	}
	return t
}

func (r *Row) theirs() theirRow {
	return theirRow{Size: r.Size, Count: r.Count, Type: r.Type, Redop: r.Redop, Root: text(strconv.Itoa(r.Root)),
		OutOfPlace: r.OutOfPlace.theirs(), OutOfPlaceIter: r.OutOfPlaceIter.theirs(), InPlace: r.InPlace.theirs(),
		InPlaceIter: r.InPlaceIter.theirs(),
		Iterations:  r.Iterations,
		Goccl: &ourRow{Op: r.Op, Backend: r.Backend, Algorithm: r.Algorithm, Cycle: r.Cycle, Time: r.Time, Calls: r.Calls,
			Overlap:    r.Overlap,
			OutOfPlace: r.OutOfPlace.ours(r.OutOfPlaceIter), InPlace: r.InPlace.ours(r.InPlaceIter)}}
}

func (h *Result) theirs() *theirHalf {
	t := &theirHalf{Time: amount(h.Time), AlgBW: amount(h.AlgBW)}
	if h.BusBW != nil {
		t.BusBW = amount(*h.BusBW)
	}
	if h.Wrong != nil {
		wrong := float64(*h.Wrong)
		t.Wrong = &wrong
	}
	return t
}

func (h *Result) ours(p *PerIter) ourHalf {
	o := ourHalf{TimeMin: h.TimeMin, TimeAvg: h.TimeAvg, TimeMax: h.TimeMax, First: h.First, Slowest: h.Slowest}
	if p != nil {
		o.Skew = p.Skew
	}
	return o
}

func (p *PerIter) theirs() *theirIter {
	if p == nil {
		return nil
	}
	t := &theirIter{p.Skipped, p.Min, p.Max, p.Avg, p.P50, p.P95, p.P99, p.Stdev, p.CV, p.Times, p.Ranks}
	if t.Times == nil {
		t.Times = []float64{}
	}
	return t
}

// parse reads what theirs has made, or nccl-tests.
func parse(b []byte) (*File, error) {
	t := new(theirFile)
	if err := plain.Unmarshal(b, t); err != nil {
		return nil, err
	}
	c := &t.Config
	f := &File{Schema: Schema, Version: t.Version, StartTime: t.StartTime, Args: t.Args, Env: t.Env, NCCL: t.NCCL,
		Errors: t.Errors, EndTime: t.EndTime,
		Config: Config{Threads: c.Threads * max(c.GPUs, 1), PerThread: c.GPUs, Min: c.Min, Max: c.Max, Warmup: c.Warmup,
			Iters: c.Iters, Agg: c.Agg, Check: c.Check,
			Graph: c.Graph, Blocked: c.Blocking == "true", Each: c.Each == "true", Skip: c.Skip, Devices: c.Devices,
			Setup: Setup{Ranks: len(c.Devices), GroupRanks: len(c.Devices), Engine: "nccl", Backends: []string{"nccl"}}},
		Results:     []Row{},
		OutOfBounds: Verdict{t.OutOfBounds.Count, t.OutOfBounds.OK == "true"},
		Average:     Bandwidth{float64(t.Average.Bandwidth), any(string(t.Average.OK))}}
	switch t.Average.OK {
	case "true", "false":
		f.Average.OK = t.Average.OK == "true"
	}
	if c.Factor != nil {
		f.Config.Factor = *c.Factor
	}
	if c.Step != nil {
		f.Config.Step = *c.Step
	}
	if g := t.Goccl; g != nil {
		if g.Schema != Schema {
			return nil, fmt.Errorf("its schema is %q, and this program knows %s and %s", g.Schema, Schema, oldSchema)
		}
		f.Goccl, f.Go, f.Startup, f.Step, f.Skipped, f.Fingerprint, f.Limits, f.Busy = g.Goccl, g.Go, g.Startup, g.Step,
			g.Skipped, g.Fingerprint, g.Limits, g.Busy
		f.Config.Setup = g.Config
	}
	op := ""
	if len(t.Args) > 0 {
		op, _ = option.Collective(filepath.Base(t.Args[0]))
	}
	for i := range t.Results {
		row, err := t.Results[i].row(op)
		if err != nil {
			return nil, err
		}
		f.Results = append(f.Results, row)
	}
	return f, nil
}

// row is a row of a file; of nccl-tests' own it is of the collective that op names.
func (t *theirRow) row(op string) (Row, error) {
	root, err := strconv.Atoi(strings.TrimSpace(string(t.Root)))
	if err != nil {
		return Row{}, fmt.Errorf("a result of %d bytes has the root %q", t.Size, t.Root)
	}
	r := Row{Op: op, Size: t.Size, Count: t.Count, Type: t.Type, Redop: t.Redop, Root: root, Iterations: t.Iterations,
		OutOfPlace: t.OutOfPlace.result(), OutOfPlaceIter: t.OutOfPlaceIter.perIter(), InPlace: t.InPlace.result(),
		InPlaceIter: t.InPlaceIter.perIter()}
	if g := t.Goccl; g != nil {
		r.Op, r.Backend, r.Algorithm, r.Cycle, r.Time, r.Calls, r.Overlap = g.Op, g.Backend, g.Algorithm, g.Cycle, g.Time,
			g.Calls, g.Overlap
		g.OutOfPlace.into(&r.OutOfPlace, r.OutOfPlaceIter)
		g.InPlace.into(&r.InPlace, r.InPlaceIter)
	}
	return r, nil
}

func (t *theirHalf) result() (r Result) {
	if t == nil {
		return r
	}
	us := float64(max(t.Time, t.CPUTime))
	r = Result{Time: us, AlgBW: float64(t.AlgBW), TimeMin: us, TimeAvg: us, TimeMax: us}
	if t.BusBW > 0 || t.AlgBW == 0 {
		bus := float64(t.BusBW)
		r.BusBW = &bus
	}
	if t.Wrong != nil && math.Abs(*t.Wrong) < 1<<53 {
		wrong := int64(*t.Wrong)
		r.Wrong = &wrong
	}
	return r
}

func (o *ourHalf) into(r *Result, p *PerIter) {
	r.TimeMin, r.TimeAvg, r.TimeMax, r.First, r.Slowest = o.TimeMin, o.TimeAvg, o.TimeMax, o.First, o.Slowest
	if p != nil {
		p.Skew = o.Skew
	}
}

func (t *theirIter) perIter() *PerIter {
	if t == nil {
		return nil
	}
	p := &PerIter{Skipped: t.Skipped, Min: t.Min, Max: t.Max, Avg: t.Avg, P50: t.P50, P95: t.P95, P99: t.P99,
		Stdev: t.Stdev, CV: t.CV, Ranks: t.Ranks}
	if len(t.Times) > 0 {
		p.Times = t.Times
	}
	return p
}

var ncclRelease = regexp.MustCompile(`\bNCCL (\d+)\.(\d+)(?:\.(\d+))?`)

// ncclVersion is the code of the release of NCCL that engine speaks of, as ncclGetVersion has it; 0 of none.
func ncclVersion(engine string) int {
	m := ncclRelease.FindStringSubmatch(engine)
	if m == nil {
		return 0
	}
	major, _ := strconv.Atoi(m[1])
	minor, _ := strconv.Atoi(m[2])
	patch, _ := strconv.Atoi(m[3])
	if major <= 2 && minor <= 8 {
		return major*1000 + minor*100 + patch
	}
	return major*10000 + minor*100 + patch
}

// old reports whether b is a file of the layout before.
func old(b []byte) bool {
	var head struct {
		Schema string `json:"schema"`
	}
	return bytes.Contains(b, []byte(oldSchema)) && plain.Unmarshal(b, &head) == nil && head.Schema == oldSchema
}
