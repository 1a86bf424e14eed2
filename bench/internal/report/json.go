package report

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/prose"
	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/environ"
	"github.com/goccl/goccl/internal/files"
	"github.com/goccl/goccl/internal/plain"
)

// Schema names the layout of the JSON file: nccl-tests' fields, version 3 of theirs,
// and what is ours. docs/bench.schema.json describes it. The layout before is read as well.
const (
	Schema    = "goccl-bench/2"
	oldSchema = "goccl-bench/1"
)

// File is what the files have. The tags of this and what it consists of are those of the layout before.
type File struct {
	Schema    string   `json:"schema"`
	Version   int      `json:"version"` // of nccl-tests' layout
	StartTime string   `json:"start_time"`
	Args      []string `json:"args"`
	Env       []string `json:"env"`
	Goccl     string   `json:"goccl_version"`
	Go        string   `json:"go_version"`
	Config    Config   `json:"config"`
	Startup   *Startup `json:"startup,omitempty"`
	Results   []Row    `json:"results"`
	Step      *Step    `json:"step,omitempty"` // of -plan
	Skipped   []string `json:"skipped"`        // what the engine does not support

	// Fingerprint is what rank 0's machine and build are, for compare to say what differs.
	Fingerprint map[string]string `json:"fingerprint,omitempty"`

	OutOfBounds Verdict   `json:"out_of_bounds"`
	Average     Bandwidth `json:"average_bus_bandwidth"`
	Limits      []string  `json:"limits_missed"` // of -min-busbw and -max-p99
	Errors      []string  `json:"errors"`
	EndTime     string    `json:"end_time"`

	Busy  string `json:"-"` // which machine was, "" if none
	NCCL  int    `json:"-"` // the version's code; 0 without NCCL
	iters string // how many iterations, in words
}

// Config is how it was run.
type Config struct {
	Threads   int     `json:"nthreads"` // ranks of a process
	PerThread int     `json:"-"`        // of them, what nccl-tests calls the GPUs of a thread
	Min       int     `json:"minimum_bytes"`
	Max       int     `json:"maximum_bytes"`
	Factor    int     `json:"step_factor,omitempty"`
	Step      int     `json:"step_bytes,omitempty"`
	Warmup    int     `json:"warmup_iters"`
	Iters     int     `json:"iterations"`
	Agg       int     `json:"aggregated_iterations"`
	Check     int     `json:"validation"`
	Devices   []Place `json:"devices"`
	Graph     int     `json:"graph_launches,omitempty"`
	Blocked   bool    `json:"-"` // -z asked for it
	Each      bool    `json:"-"` // single iterations are timed as well, and
	Skip      int     `json:"-"` // so many of the first ones left out
	Groups    []int   `json:"-"` // how many ranks each group has

	Setup
}

// Setup is what goccl's files have beyond nccl-tests' configuration.
type Setup struct {
	Average    int      `json:"average"`
	Ranks      int      `json:"nranks"`
	Processes  int      `json:"nprocs"`
	Hosts      int      `json:"nhosts"`
	Launcher   string   `json:"launcher"`
	Engine     string   `json:"engine"`
	Transport  string   `json:"transport"`
	CPU        string   `json:"cpu"`
	Backends   []string `json:"backends"`
	Memory     string   `json:"memory"`
	Registered bool     `json:"registered,omitempty"`
	Windows    bool     `json:"windows,omitempty"`
	Hints      string   `json:"hints,omitempty"`
	Misalign   int      `json:"misalign,omitempty"`
	Blocking   int      `json:"blocking"`
	Split      string   `json:"split,omitempty"`
	GroupRanks int      `json:"group_ranks"` // of rank 0's group: all, without -split
	GroupHosts int      `json:"group_hosts,omitempty"`
	Rotate     int      `json:"rotate,omitempty"`
	Flush      bool     `json:"flush,omitempty"`
	Target     float64  `json:"target_seconds,omitempty"`
	Matrix     string   `json:"matrix,omitempty"`
	Ceiling    *Ceiling `json:"ceiling,omitempty"`
}

// Ceiling is what the machine could carry, for the curves to be seen against.
type Ceiling struct {
	Bandwidth float64 `json:"bandwidth"` // GB/s of busbw
	What      string  `json:"what"`
}

// Startup is what it took to begin, in microseconds, by the slowest rank.
type Startup struct {
	Join  float64            `json:"join_us"`            // finding the other ranks
	Comms map[string]float64 `json:"comm_us"`            // making a communicator, by backend
	Split float64            `json:"split_us,omitempty"` // splitting it
	Rank  int                `json:"slowest_rank"`       // of the first communicator
}

// Step is a whole training step, as -plan replays it.
type Step struct {
	Scheme string   `json:"scheme"`
	Model  string   `json:"model"`
	Ranks  int      `json:"nranks"`
	Calls  int      `json:"calls"`
	Bytes  int      `json:"bytes"` // the sum of the calls' sizes
	Time   float64  `json:"time"`  // microseconds, by the slowest rank
	Iter   *PerIter `json:"per_iter"`
}

// Verdict counts wrong elements.
type Verdict struct {
	Count int64 `json:"count"`
	OK    bool  `json:"okay"`
}

// Bandwidth is the footer's average. OK compares it with -min-busbw: true, false, or
// "unchecked" where there is none.
type Bandwidth struct {
	Bandwidth float64 `json:"bandwidth"`
	OK        any     `json:"okay"`
}

const timeFormat = "2006-01-02 15:04:05"

// NewFile starts a file.
func NewFile(args, environ []string, now time.Time) *File {
	return &File{
		Schema: Schema, Version: 3, StartTime: now.Format(timeFormat),
		Args: slices.Clone(args), Env: Allowed(environ),
		Results: []Row{}, Skipped: []string{}, Errors: []string{}, Limits: []string{},
	}
}

// Describe notes the settings of a job that the file has already.
func (f *File) Describe(o *option.Options) {
	f.NCCL = ncclVersion(f.Config.Engine)
	f.Config = Config{
		Threads: o.Threads, PerThread: o.PerThread, Blocked: o.BlockingGiven && o.Blocking != option.WaitAtEnd,
		Each: o.Individually(), Skip: o.Skip, Min: o.Min, Max: o.Max, Factor: o.Factor, Step: o.Step,
		Warmup: o.Warmup, Iters: o.Iters, Agg: o.Agg, Check: o.Check, Graph: o.Graph, Devices: f.Config.Devices,
		Groups: f.Config.Groups, Setup: f.Config.Setup,
	}
	c := &f.Config
	c.Average, c.Backends, c.Memory, c.Registered, c.Windows, c.Hints = int(o.Average), o.Backends, o.Mem, o.Registered,
		o.Windows, o.Hints.String()
	c.Misalign, c.Blocking, c.Split, c.Flush, c.Target = o.Misalign, int(o.Blocking), o.Split.String(), o.Flush,
		o.Target.Seconds()
	switch {
	case o.Long() > 0:
		f.iters = fmt.Sprintf("as many as take %v, at least %d", o.Long(), o.Iters)
	case o.ItersGiven || o.Flush:
		f.iters = strconv.Itoa(o.Iters)
	default:
		f.iters = fmt.Sprintf("%d (below 256 KiB up to %d)", o.Iters, o.Timed(1))
	}
	if o.Rotate > 1 {
		c.Rotate = o.Rotate
	}
	if o.Matrix != nil {
		c.Matrix = o.Matrix.Name
	}
	if len(o.Lengths) > 0 || o.Plan != "" {
		c.Min, c.Max, _ = o.Span(c.GroupRanks)
		c.Factor, c.Step = 0, 0
	}
}

// Close completes the file.
func (f *File) Close(s *Summary, now time.Time) {
	f.OutOfBounds = Verdict{Count: s.Wrong, OK: s.Wrong == 0}
	f.Average = Bandwidth{Bandwidth: s.BusBW(), OK: "unchecked"}
	if s.MinBusBW > 0 {
		f.Average.OK = s.BusBW() >= s.MinBusBW
	}
	f.Limits = append(f.Limits, s.Missed()...)
	f.EndTime = now.Format(timeFormat)
}

// Save writes the file to path, which -flag named, in the form that write gives it.
func (f *File) Save(flag, path string, write func(f *File, w io.Writer) error) error {
	var b bytes.Buffer
	err := write(f, &b)
	switch {
	case err != nil:
	case path == option.Stdout:
		_, err = os.Stdout.Write(b.Bytes())
	default:
		err = files.Write(path, b.Bytes())
	}
	if err != nil {
		return fmt.Errorf("-%s %s: the results could not be written: %w", flag, path, prose.Cause(err))
	}
	return nil
}

// JSON writes f as such.
func (f *File) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", " ")
	return e.Encode(f.theirs())
}

// mostLoaded is more than a file of results has.
const mostLoaded = 256 << 20

// Load reads a file that JSON has written, or nccl-tests. sum is of the file's contents.
func Load(path string) (f *File, sum [sha256.Size]byte, err error) {
	b, err := files.Read(path, mostLoaded)
	if err != nil {
		return nil, sum, fmt.Errorf("%s: it cannot be read: %w", path, prose.Cause(err))
	}
	if f, err = Parse(b); err != nil {
		return nil, sum, fmt.Errorf("%s: %w", path, err)
	}
	return f, sha256.Sum256(b), nil
}

// Parse reads what JSON has written, in this layout and the one before, and what nccl-tests has.
func Parse(b []byte) (*File, error) {
	f := new(File)
	var err error
	if old(b) {
		err = plain.Unmarshal(b, f)
	} else {
		f, err = parse(b)
	}
	if err != nil {
		return nil, fmt.Errorf("it is not a file that -J writes: %w", err)
	}
	if f.Version < 2 || f.Version > 3 {
		return nil, fmt.Errorf("it is not a file that -J writes: its version is %d, not 2 or 3", f.Version)
	}
	return f, nil
}

// Writable finds out, before anything is measured, whether Save could write path, which
// -flag named.
// What is there stays as it is.
func Writable(flag, path string) error {
	if path == option.Stdout {
		return nil
	}
	if err := files.Writable(path); err != nil {
		return fmt.Errorf("-%s %s: it cannot be written: %w", flag, path, prose.Cause(err))
	}
	return nil
}

// WritableDirectory makes sure, before anything is measured, that figures could be written into dir, which -flag named.
func WritableDirectory(flag, dir string) error {
	err := os.MkdirAll(dir, 0o777)
	if err == nil {
		var probe *os.File
		if probe, err = os.CreateTemp(dir, ".bench-*"); err == nil {
			probe.Close()
			os.Remove(probe.Name())
		}
	}
	if err != nil {
		return fmt.Errorf("-%s %s: it is not a writable directory: %w", flag, dir, prose.Cause(err))
	}
	return nil
}

// allowed are the variables that go into the file: those that change how a job
// runs, besides those of the backends. The rest of an environment is nobody's business, secrets above all.
var allowed = []string{
	"GOCCL_*", "GOMAXPROCS", "GOGC", "GOMEMLIMIT", "GODEBUG", "GOAMD64", "OMP_NUM_THREADS",
	"NCCL_*", "RCCL_*", "CCL_*", "CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK",
	"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT",
	"PMI_RANK", "PMI_SIZE", "PALS_RANKID", "PALS_NODEID", "PALS_LOCAL_RANKID", "PALS_DEPTH",
	"OMPI_COMM_WORLD_*", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_TASKS_PER_NODE",
	"SLURM_JOB_NUM_NODES", "SLURM_CPUS_PER_TASK", "SLURM_CPU_BIND_TYPE", "PALS_PMI", "PALS_CPU_BIND",
	"FI_*", "UCX_*", "MPICH_*", "I_MPI_*", "MPIR_CVAR_*", "HSA_*", "ZE_FLAT_DEVICE_HIERARCHY", "LD_LIBRARY_PATH",
}

// secret are parts of names that keep a variable out whatever its prefix, and secretWord are whole words of names.
var (
	secret = []string{"SECRET", "TOKEN", "PASSW", "PASSPHRASE", "PASSCODE", "CREDENTIAL", "KEY", "AUTH", "PRIVATE",
		"COOKIE", "BEARER", "SIGNATURE"}
	secretWord = []string{"PASS", "PWD", "PW", "PIN", "CRED", "CREDS", "JWT", "OTP", "SALT", "LOGIN", "CERT", "PSK",
		"SIG", "USER", "USERNAME"}
)

// withSecret is a value that has one: an address with a user's password.
var withSecret = regexp.MustCompile(`://[^/\s]*:[^/\s]*@`)

// Allowed is the part of an environment that may be shown, sorted.
func Allowed(environ []string) []string {
	kept := []string{}
	for _, e := range environ {
		if name, value, ok := strings.Cut(e, "="); ok && shown(name) && !withSecret.MatchString(value) {
			kept = append(kept, e)
		}
	}
	slices.Sort(kept)
	return kept
}

func shown(name string) bool {
	upper := strings.ToUpper(name)
	words := strings.FieldsFunc(upper, func(r rune) bool { return (r < 'A' || r > 'Z') })
	if slices.ContainsFunc(secret, func(s string) bool { return strings.Contains(upper, s) }) ||
		slices.ContainsFunc(secretWord, func(s string) bool { return slices.Contains(words, s) }) {
		return false
	}
	return environ.Match(allowed, name) || environ.Match(engine.Variables(), name)
}
