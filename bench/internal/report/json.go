package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/goccl/goccl/bench/internal/option"
)

// Schema names the layout of the JSON file: nccl-tests' fields, version 2 of
// theirs, and what is ours: op in each result, the ranks' times, the header.
const Schema = "goccl-bench/1"

// File is the JSON file.
type File struct {
	Schema    string   `json:"schema"`
	Version   int      `json:"version"` // of nccl-tests' layout
	StartTime string   `json:"start_time"`
	Args      []string `json:"args"`
	Env       []string `json:"env"`
	Goccl     string   `json:"goccl_version"`
	Go        string   `json:"go_version"`
	Config    Config   `json:"config"`
	Results   []Row    `json:"results"`
	Skipped   []string `json:"skipped"` // what the engine does not support

	OutOfBounds Verdict   `json:"out_of_bounds"`
	Average     Bandwidth `json:"average_bus_bandwidth"`
	Errors      []string  `json:"errors"`
	EndTime     string    `json:"end_time"`
}

// Config is how it was run.
type Config struct {
	Threads   int     `json:"nthreads"`
	Min       int     `json:"minimum_bytes"`
	Max       int     `json:"maximum_bytes"`
	Factor    int     `json:"step_factor,omitempty"`
	Step      int     `json:"step_bytes,omitempty"`
	Warmup    int     `json:"warmup_iters"`
	Iters     int     `json:"iterations"`
	Agg       int     `json:"aggregated_iterations"`
	Check     int     `json:"validation"`
	Average   int     `json:"average"`
	Ranks     int     `json:"nranks"`
	Processes int     `json:"nprocs"`
	Hosts     int     `json:"nhosts"`
	Launcher  string  `json:"launcher"`
	Engine    string  `json:"engine"`
	Transport string  `json:"transport"`
	CPU       string  `json:"cpu"`
	Devices   []Place `json:"devices"`
}

// Verdict counts wrong elements.
type Verdict struct {
	Count int64 `json:"count"`
	OK    bool  `json:"okay"`
}

// Bandwidth is the footer's average; nccl-tests' okay compares it with a limit,
// which there is none of here.
type Bandwidth struct {
	Bandwidth float64 `json:"bandwidth"`
	OK        string  `json:"okay"`
}

const timeFormat = "2006-01-02 15:04:05"

// NewFile starts a file.
func NewFile(args, environ []string, now time.Time) *File {
	return &File{
		Schema: Schema, Version: 2, StartTime: now.Format(timeFormat),
		Args: slices.Clone(args), Env: Allowed(environ),
		Results: []Row{}, Skipped: []string{}, Errors: []string{},
	}
}

// Describe notes the job and the settings.
func (f *File) Describe(j *Job, o *option.Options) {
	f.Goccl, f.Go = j.Version, j.Go
	f.Config = Config{
		Threads: o.Threads, Min: o.Min, Max: o.Max, Factor: o.Factor, Step: o.Step,
		Warmup: o.Warmup, Iters: o.Iters, Agg: o.Agg, Check: o.Check, Average: int(o.Average),
		Ranks: j.Ranks, Processes: j.Processes, Hosts: j.Hosts, Launcher: j.Launcher,
		Engine: j.Engine, Transport: j.Transport, CPU: j.CPU, Devices: j.Places,
	}
}

// Save completes the file and writes it to path.
func (f *File) Save(path string, s *Summary, now time.Time) error {
	f.OutOfBounds = Verdict{Count: s.Wrong, OK: s.Wrong == 0}
	f.Average = Bandwidth{Bandwidth: s.BusBW(), OK: "unchecked"}
	f.EndTime = now.Format(timeFormat)
	b, err := json.MarshalIndent(f, "", "  ")
	if err == nil {
		err = os.WriteFile(path, append(b, '\n'), 0o666)
	}
	if err != nil {
		return fmt.Errorf("-J %s: the results could not be written: %w", path, cause(err))
	}
	return nil
}

// Writable finds out, before anything is measured, whether Save could write path.
// What is there stays as it is.
func Writable(path string) error {
	_, before := os.Lstat(path)
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o666)
	if err != nil {
		return fmt.Errorf("-J %s: it cannot be written: %w", path, cause(err))
	}
	file.Close()
	if errors.Is(before, os.ErrNotExist) {
		os.Remove(path)
	}
	return nil
}

// cause is err without the path, which is said already.
func cause(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// allowed are the variables that go into the file: those that change how a job
// runs. The rest of an environment is nobody's business, secrets above all.
var allowed = []string{
	"GOCCL_*", "GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG", "GOAMD64", "OMP_NUM_THREADS",
	"NCCL_*", "RCCL_*", "CCL_*", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK",
	"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
	"PMI_RANK", "PMI_SIZE", "PALS_RANKID", "PALS_NODEID", "PALS_LOCAL_RANKID", "PALS_DEPTH",
	"OMPI_COMM_WORLD_*", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE",
	"SLURM_JOB_NUM_NODES", "SLURM_CPUS_PER_TASK",
}

// secret are words that keep a variable out whatever its prefix.
var secret = []string{"SECRET", "TOKEN", "PASSWORD", "CREDENTIAL", "KEY"}

// Allowed is the part of an environment that may be shown, sorted.
func Allowed(environ []string) []string {
	kept := []string{}
	for _, e := range environ {
		if name, _, ok := strings.Cut(e, "="); ok && shown(name) {
			kept = append(kept, e)
		}
	}
	slices.Sort(kept)
	return kept
}

func shown(name string) bool {
	if slices.ContainsFunc(secret, func(s string) bool { return strings.Contains(strings.ToUpper(name), s) }) {
		return false
	}
	return slices.ContainsFunc(allowed, func(a string) bool {
		prefix, open := strings.CutSuffix(a, "*")
		return name == a || open && strings.HasPrefix(name, prefix)
	})
}
