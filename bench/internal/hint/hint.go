// Package hint knows failures that launchers and libraries report in words of their
// own, and says in ours what to do.
package hint

import (
	"bytes"
	"io"
	"regexp"
	"slices"
	"sync"

	"github.com/goccl/goccl/internal/engine"
)

// rule is one known failure.
type rule struct {
	pattern *regexp.Regexp
	advice  string
	// fatal: ranks are missing for good, and under some launchers the others wait.
	fatal bool
}

// rules are searched in order, line by line; a line gets the first that fits: those of launchers
// and machines, then those of the backends.
var rules = sync.OnceValue(func() []rule {
	all := general
	for _, b := range engine.Backends() {
		for _, f := range b.Failures {
			all = append(slices.Clip(all), known(f.Pattern, f.Advice))
		}
	}
	return all
})

var general = []rule{
	// The program on the nodes.
	fatal(`(?i)(execve?p?\(\)|execvp error on file|goccl-bench-).*no such file or directory|unable to find the specified executable`,
		"a node does not see the program: put it into a directory that all nodes share, or name one with -share DIR"),
	fatal(`(?i)(execve?p?\(\)|execvp error on file|goccl-bench-).*permission denied`,
		"the program may not be run from there (a file system mounted noexec?): name another directory with -share DIR"),
	fatal(`(?i)exec format error`,
		"the nodes have a different processor from the machine that built the program: build it with GOARCH for the nodes"),

	// A node that mpiexec does not reach: Hydra starts the others, which would wait for it.
	fatal(`(?i)^(ssh: )?could not resolve hostname|^ssh: .*(name or service not known|no route to host|connection refused)`,
		"a node's name is not known here, or nothing listens there: use the names of the scheduler's node file, or addresses, in -hostfile"),

	// Slurm.
	known(`(?i)more processors requested than permitted|requested node configuration is not available|unable to create step.*(config|nodes)`,
		"the allocation has fewer cores, GPUs or nodes than that: lower -ppn or -nodes, or leave the machine's flags out with -profile none"),
	known(`(?i)step creation temporarily disabled|requested nodes are busy`,
		"another step of this job holds the cores or GPUs: end it, or start the allocation anew"),
	known(`(?i)invalid (mpi|pmi).*(type|plugin)|couldn't find the specified plugin name for mpi`,
		"this Slurm lacks that PMI: srun --mpi=list shows those it has; set SLURM_MPI_TYPE to one of them"),
	known(`(?i)invalid (generic resource|gres|trackable resource)`,
		"this Slurm does not know these GPUs: leave the machine's flags out with -profile none"),

	// Hydra and Open MPI.
	known(`(?i)not enough slots available`,
		"Open MPI counts fewer slots than ranks: give -hostfile with slots=N, or a lower -ppn"),
	known(`(?i)attempt to run as root|allow-run-as-root`,
		"Open MPI refuses root: run as a user, or set OMPI_ALLOW_RUN_AS_ROOT=1 and OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 (in a container)"),
	known(`(?i)host key verification failed|permission denied \(publickey`,
		"mpiexec reaches the nodes by ssh, which refused: make a key that needs no password, and accept the nodes' host keys"),
	known(`(?i)could not resolve hostname|name or service not known|unknown host`,
		"a node's name is not known here: use the names of the scheduler's node file, or addresses, in -hostfile"),

	// PALS and Slingshot (ALCF's known issues, HPE's guides).
	known(`(?i)no vnis? available`,
		"the node's network contexts are used up: end other mpiexec of this job, or for a job on one node give mpiexec --no-vni (-dry-run prints the command)"),
	known(`(?i)cassini event queue|cxi.*(eq|event queue).*overflow|FI_EOVERRUN`,
		"the network adapter's queue overflowed: FI_CXI_DEFAULT_CQ_SIZE=131072 or more, FI_CXI_RX_MATCH_MODE=hybrid, and at scale FI_CXI_CQ_FILL_PERCENT=30"),
	known(`(?i)af_unix path too long`,
		"a socket's path is too long, because TMPDIR is: export TMPDIR=/tmp"),
	known(`(?i)ping (to .*)?failed|ping_.*failed`,
		"a node no longer answers PALS: leave it out (-nodes, -hostfile) or ask for a new allocation; at scale set PALS_PING_PERIOD=240 PALS_RPC_TIMEOUT=240"),
	known(`PMIX_ERR_NOT_FOUND`,
		"PMIX_ERR_NOT_FOUND alone is harmless; look for the first other message"),

	// Libraries and memory.
	known(`(?i)\blib[^ /]*: cannot open shared object`,
		"a library is missing on a node: load its module in the job, or set LD_LIBRARY_PATH; bench doctor shows which node has which"),
	known(`(?i)(ibv_reg_mr|memory registration|register).*cannot allocate memory`,
		"memory cannot be locked for the network: ulimit -l unlimited (in a container --ulimit memlock=-1)"),
	known(`(?i)bus error|/dev/shm.*no space left|no space left.*/dev/shm`,
		"/dev/shm is full: in a container give --shm-size=1g or more, or remove stale files there"),
	known(`(?i)oom[-_ ]kill|out of memory`,
		"a node ran out of memory: a smaller -e, or fewer ranks a node with -ppn"),
}

func known(pattern, advice string) rule { return rule{regexp.MustCompile(pattern), advice, false} }
func fatal(pattern, advice string) rule { return rule{regexp.MustCompile(pattern), advice, true} }

// For is the advice for one line of output, "" if it is no known failure; fatal says
// that the job cannot go on whatever its ranks do.
func For(line string) (advice string, fatal bool) {
	for _, r := range rules() {
		if r.pattern.MatchString(line) {
			return r.advice, r.fatal
		}
	}
	return "", false
}

// Watch passes on what is written to it. It remembers the advice for it, and whether a rank has said why it failed.
type Watch struct {
	W     io.Writer
	Fatal func() // called once, if not nil, when a fatal failure is seen

	mu    sync.Mutex
	rest  []byte // of a line that has not ended
	found []string
	said  bool
}

// logged are the lines in which ranks report what they saw; all others that bench writes say why a rank failed.
var logged = regexp.MustCompile(`^bench: rank \d+ on \S+: (debug|info|warn|error)`)

// longest is how much of a line is looked at.
const longest = 4096

// Write looks at whole lines.
func (w *Watch) Write(p []byte) (int, error) {
	w.mu.Lock()
	for rest := p; ; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		w.rest = append(w.rest, line[:min(len(line), longest-min(longest, len(w.rest)))]...)
		if !ended {
			break
		}
		w.look()
		rest = after
	}
	w.mu.Unlock()
	return w.W.Write(p)
}

// look takes down what the line tells that has ended.
func (w *Watch) look() {
	w.said = w.said || bytes.HasPrefix(w.rest, []byte("bench")) && bytes.Contains(w.rest, []byte(": ")) &&
		!logged.Match(w.rest)
	if a, fatal := For(string(w.rest)); a != "" && !slices.Contains(w.found, a) {
		w.found = append(w.found, a)
		if fatal && w.Fatal != nil {
			w.Fatal()
			w.Fatal = nil
		}
	}
	w.rest = w.rest[:0]
}

// Said reports whether a rank has said why it failed: in a line of bench that is not one of its log.
func (w *Watch) Said() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.said
}

// Advice is what to do about the failures seen, each once, in their order.
func (w *Watch) Advice() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rest) > 0 {
		w.look()
	}
	return w.found
}
