package boot

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/internal/environ"
	"github.com/goccl/goccl/internal/files"
	"github.com/goccl/goccl/internal/plain"
)

// Launch is what the environment says about this process and its launcher.
type Launch struct {
	// Launcher is goccl, torchrun, openmpi, pmi, pals, slurm, env (plain RANK and WORLD_SIZE), pet
	// (a pod with PET_ variables), kubernetes (a pod of an Indexed Job) or none.
	Launcher string
	// Rank is this process's rank of Size.
	Rank, Size int
	// On its host, this rank is number Local of Locals. Both are -1 if not known.
	Local, Locals int
	// The host is number Node of Nodes. Both are -1 if not known.
	Node, Nodes int
	// Job tells this job from others. It is "" where the launcher does not say.
	Job string
}

// vars reads the environment of one process.
type vars struct {
	getenv   func(string) string
	environ  []string // the same as NAME=VALUE: nil where only getenv is known
	readFile func(string) ([]byte, error)
	shared   func(dir string) bool // do the job's hosts share it? nil: isShared
	err      error                 // the first value that was no number
}

// number reads a variable that has to be a number from 0 where another is set.
func (v *vars) number(name, with string) int {
	if v.getenv(name) == "" {
		v.fail("%s is not set, though %s=%s is; set both, or set GOCCL_LAUNCHER to what started this process (none if nothing did)",
			name, with, plain.Clip(v.getenv(with)))
		return -1
	}
	return v.maybe(name)
}

// maybe is number for one that may be missing: -1 then.
func (v *vars) maybe(name string) int {
	s := v.getenv(name)
	if s == "" {
		return -1
	}
	n, err := strconv.ParseInt(s, 10, 32)
	if err != nil || n < 0 {
		v.fail("%s=%s is not a whole number of at least 0", name, plain.Clip(s))
		return -1
	}
	return int(n)
}

func (v *vars) fail(format string, args ...any) {
	if v.err == nil {
		v.err = fault(Argument, format, args...)
	}
}

func (v *vars) has(names ...string) bool {
	return !slices.ContainsFunc(names, func(n string) bool { return v.getenv(n) == "" })
}

// family is one launcher's variables. Values are taken from one family only: a
// Slurm step under mpiexec, say, is that of mpiexec's daemons.
type family struct {
	name       string
	present    func(*vars) bool
	read       func(*vars) Launch
	rank, size string // the variables that say it, for messages
	sign       string // what present looks for, for messages
}

// families are the launchers, innermost first: where several have set their
// variables, the first one started this process, and the others what started it.
var families = []family{
	{"goccl", func(v *vars) bool { return v.has(environ.Rank.Name) }, readGoccl, environ.Rank.Name, environ.Size.Name,
		environ.Rank.Name},
	{"torchrun", func(v *vars) bool { return v.has("TORCHELASTIC_RUN_ID") }, readTorchrun, "RANK", "WORLD_SIZE",
		"TORCHELASTIC_RUN_ID"},
	{"openmpi", func(v *vars) bool { return v.has("OMPI_COMM_WORLD_RANK") || v.has("OMPI_COMM_WORLD_SIZE") },
		readOpenMPI, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
	{"pmi", hasPMI, readPMI, "PMI_RANK", "PMI_SIZE", "PMI_RANK with PMI_FD or PMI_PORT"},
	{"pals", func(v *vars) bool { return v.has("PALS_RANKID") }, readPALS, "PALS_RANKID", "the application's size",
		"PALS_RANKID"},
	{"slurm", hasStep, readSlurm, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS",
		"SLURM_STEP_ID of a step with SLURM_PROCID and SLURM_STEP_NUM_TASKS"},
	{"env", hasPlain, readPlain, "RANK", "WORLD_SIZE", "RANK"},
	{"pet", hasPET, readPET, "PET_NODE_RANK", "PET_NNODES", "PET_NODE_RANK"},
	{"kubernetes", func(v *vars) bool { return v.has("JOB_COMPLETION_INDEX") }, readKubernetes, "JOB_COMPLETION_INDEX",
		environ.Size.Name, "JOB_COMPLETION_INDEX"},
}

// Detect returns which launcher started this process, and its place in the job. It reads only
// getenv; under PALS also the files that PALS_APINFO and PBS_NODEFILE name, and in a pod its hosts
// file. Under no launcher the process is rank 0 of 1.
func Detect(getenv func(string) string) (Launch, error) {
	return detect(&vars{getenv: getenv, readFile: readFile})
}

// readFile reads what a variable of a launcher names.
func readFile(name string) ([]byte, error) { return files.Read(name, 64<<20) }

func detect(v *vars) (Launch, error) {
	f, err := v.which()
	if err != nil {
		return Launch{}, err
	}
	if f == nil {
		return Launch{Launcher: "none", Size: 1, Locals: 1, Nodes: 1}, nil
	}
	l := f.read(v)
	l.Launcher = f.name
	if v.err != nil {
		return Launch{}, v.err
	}
	if l.Size < 1 || l.Rank >= l.Size {
		return Launch{}, fault(Argument, "%s=%d but %s=%d; the launcher's variables are inconsistent",
			f.rank, l.Rank, f.size, l.Size).of(l.Rank, -1)
	}
	if environ.Launcher.Text(v.getenv) == "" {
		if err := v.conflict(f, l); err != nil {
			return Launch{}, err
		}
	}
	return l, nil
}

// which finds the family that counts; nil for none.
func (v *vars) which() (*family, error) {
	forced := environ.Launcher.Text(v.getenv)
	if forced == "none" {
		return nil, nil
	}
	var names []string
	for i := range families {
		f := &families[i]
		names = append(names, f.name)
		switch {
		case forced == "" && f.present(v):
			return f, nil
		case forced == f.name && f.present(v):
			return f, nil
		case forced == f.name:
			return nil, fault(Argument, "GOCCL_LAUNCHER=%s, but there is no %s: it did not start this process", forced, f.sign)
		}
	}
	if forced != "" {
		return nil, fault(Argument, "GOCCL_LAUNCHER=%s is not one of %s, none", plain.Clip(forced), strings.Join(names, ", "))
	}
	if v.has(environ.Size.Name) {
		return nil, fault(Argument, "GOCCL_SIZE=%s, but GOCCL_RANK is not set, and no launcher says which rank this is",
			plain.Clip(environ.Size.Text(v.getenv)))
	}
	return nil, nil
}

// conflict looks for variables that contradict the family that counts. Our own are
// the user's last word, and beside torchrun's there are only what it was started by.
func (v *vars) conflict(f *family, l Launch) error {
	if f.name == "goccl" || f.name == "torchrun" || f.name == "env" {
		return nil
	}
	mine := fmt.Sprintf("rank %d of %d (%s)", l.Rank, l.Size, f.name)
	if f.name == "openmpi" && hasPMI(v) {
		rank, size := v.getenv("PMI_RANK"), v.getenv("PMI_SIZE")
		if !agrees(rank, l.Rank) || !agrees(size, l.Size) {
			return fault(Argument, "two launchers contradict each other: %s, and PMI_RANK=%s PMI_SIZE=%s (pmi); set GOCCL_LAUNCHER to the one that started this process: openmpi or pmi",
				mine, plain.Clip(rank), plain.Clip(size)).of(l.Rank, -1)
		}
	}
	for _, own := range []struct {
		name string
		want int
	}{{"RANK", l.Rank}, {"WORLD_SIZE", l.Size}, {environ.Size.Name, l.Size}} {
		if s := v.getenv(own.name); s != "" && !agrees(s, own.want) {
			return fault(Argument, "the environment contradicts itself: %s, and %s=%s; unset the wrong one, or set GOCCL_LAUNCHER to what started this process: %s, env or none",
				mine, own.name, plain.Clip(s), f.name).of(l.Rank, -1)
		}
	}
	return nil
}

func agrees(s string, n int) bool {
	m, err := strconv.Atoi(s)
	return err == nil && m == n
}

// oneHost fills in what follows if all ranks are on this host.
func (l Launch) oneHost() Launch {
	if l.Locals == l.Size && l.Size > 0 {
		l.Node, l.Nodes = 0, 1
	}
	return l
}
