package launch

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccl/goccl/bench/internal/profile"
	"github.com/goccl/goccl/bench/internal/prose"
)

// starter is the program that starts ranks on several nodes.
type starter struct {
	kind string // srun, pals, hydra, openmpi
	path string // of the command
}

// findStarter finds the launcher that is wanted (auto, or a command), for an
// allocation of this scheduler.
func findStarter(ctx context.Context, wanted, scheduler string, p *profile.Profile) (*starter, error) {
	names := []string{wanted}
	if wanted == "auto" {
		names = []string{"mpiexec", "mpirun"}
		if scheduler == "slurm" {
			names = []string{"srun"}
		}
	}
	for _, name := range names {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if filepath.Base(path) == "srun" {
			return &starter{"srun", path}, nil
		}
		kind, err := kindOf(ctx, path, p)
		return &starter{kind, path}, err
	}
	return nil, fmt.Errorf("no %s in PATH to start ranks on the nodes with: load its module, name one with -launcher, or stay on this machine with -launcher local",
		strings.Join(names, " and no "))
}

// kindOf finds out whose mpiexec it is by what it calls itself: many are called so,
// and a conda environment's may lie before the machine's own.
func kindOf(ctx context.Context, path string, p *profile.Profile) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	out, _ := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	if kind := kindBy(string(out), path); kind != "" {
		return kind, nil
	}
	if p.Name == "aurora" || p.Name == "polaris" {
		return "pals", nil // there is no other in the system's paths
	}
	first, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	return "", fmt.Errorf("%s is not an mpiexec that bench knows (PALS, MPICH's and Intel's Hydra, Open MPI): its --version says %.100q; name another with -launcher", path, first)
}

// kindBy tells an mpiexec by its --version and its path.
func kindBy(version, path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	switch {
	case strings.Contains(version, "PALS") || strings.Contains(path, "/pals/"):
		return "pals"
	case strings.Contains(version, "HYDRA") || strings.Contains(version, "Intel(R) MPI"):
		return "hydra"
	case strings.Contains(version, "OpenRTE") || strings.Contains(version, "Open MPI") ||
		strings.Contains(version, "PRRTE"):
		return "openmpi"
	}
	return ""
}

// command is the starter's command line for a job.
func (s *starter) command(p *Plan) []string {
	own := map[string]func() []string{"srun": p.srun, "pals": p.pals, "hydra": p.hydra, "openmpi": p.openmpi}[s.kind]
	return slices.Concat([]string{s.path}, own(), p.flags, p.program)
}

// srun: a step takes the defaults of the step around it, so everything is said; and
// the shell of srun --pty or of an interactive step holds cores, hence overlap.
func (p *Plan) srun() []string {
	input := "--input=none"
	if p.Stdin != nil && !terminal(p.Stdin) {
		input = "--input=0" // rank 0's alone; without it all ranks get a copy
	}
	kill := "--kill-on-bad-exit=1"
	if p.KeepGoing {
		kill = "--kill-on-bad-exit=0"
	}
	return slices.Concat(
		[]string{"--nodes=" + strconv.Itoa(p.Nodes), "--ntasks=" + strconv.Itoa(p.Ranks)},
		when(p.Ranks == p.Nodes*p.PerNode, "--ntasks-per-node="+strconv.Itoa(p.PerNode)), // srun refuses it otherwise
		[]string{"--overlap", "--export=ALL", input, kill},
		// no longer inherited since Slurm 22.05
		when(p.cores > 0 && !hasFlag(p.flags, "--cpus-per-task"), "--cpus-per-task="+strconv.Itoa(p.cores)),
		when(len(p.hosts) > 0, "--nodelist="+strings.Join(p.hosts, ",")),
		when(p.Prefix, "--label"),
		when(p.spread != "", "--bcast="+p.spread),
	)
}

// when is arguments that a command gets on a condition.
func when(is bool, args ...string) []string {
	if !is {
		return nil
	}
	return args
}

// pals: the node file has every node of the job; --np and --ppn fill them in order.
func (p *Plan) pals() []string {
	return slices.Concat(
		[]string{"--envall", "--np", strconv.Itoa(p.Ranks), "--ppn", strconv.Itoa(p.PerNode)},
		when(p.hostfile != "", "--hostfile", p.hostfile),
		when(p.Prefix, "--label"),
		when(p.KeepGoing, "--no-abort-on-failure"),
	)
}

// hydra: -hosts with room on each.
func (p *Plan) hydra() []string {
	return slices.Concat(
		[]string{"-n", strconv.Itoa(p.Ranks), "-ppn", strconv.Itoa(p.PerNode)},
		when(len(p.hosts) > 0, "-hosts", p.hostList()),
		when(p.Prefix, "-l"),
	)
}

// openmpi: its binding would leave Go one core (GOMAXPROCS) for all threads of a
// rank, and it passes on no variables but its own unless told to.
func (p *Plan) openmpi() []string {
	var variables []string
	for _, name := range p.passed() {
		variables = append(variables, "-x", name)
	}
	return slices.Concat(
		[]string{"-n", strconv.Itoa(p.Ranks), "--bind-to", "none", "--oversubscribe"},
		when(len(p.hosts) > 0, "--host", p.hostList()),
		when(len(p.hosts) == 0, "-npernode", strconv.Itoa(p.PerNode)),
		variables,
		when(p.Prefix, "--tag-output"),
	)
}

// hostList is the hosts with their room: h1:2,h2:2.
func (p *Plan) hostList() string {
	return strings.Join(prose.Names(p.hosts, func(h string) string { return h + ":" + strconv.Itoa(p.PerNode) }), ",")
}

// hasFlag reports whether flags have one of that name.
func hasFlag(flags []string, name string) bool {
	return slices.ContainsFunc(flags, func(f string) bool { return f == name || strings.HasPrefix(f, name+"=") })
}
