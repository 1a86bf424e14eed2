package launch

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/bench/internal/prose"
)

// Allocation is the nodes that a scheduler has given to this job.
type Allocation struct {
	Scheduler string   // slurm, pbs, or hostfile
	Hosts     []string // each once, in order; nil under Slurm, which knows them itself
	Nodes     int
	PerNode   int // ranks of a node that the scheduler was asked for; 0: no such wish
	Ranks     int // of all, likewise
	Cores     int // of a rank, likewise
}

// Interactive reports whether this process is the shell of srun --pty, or was started
// by hand in it: a step by its variables, but no rank that others wait for.
func Interactive(getenv func(string) string) bool {
	return getenv("SLURM_STEP_ID") != "" && getenv("SLURM_PTY_PORT") != ""
}

// Find finds the allocation that this process is in; nil if it is in none. PBS_JOBID
// alone does not mean PBS, since a plugin of Slurm sets it, too.
func Find(getenv func(string) string, readFile func(string) ([]byte, error)) (*Allocation, error) {
	if getenv("SLURM_JOB_ID") != "" {
		return fromSlurm(getenv)
	}
	for _, v := range hostFiles {
		path := getenv(v.name)
		if path == "" {
			continue
		}
		text, err := readFile(path)
		if err != nil {
			return nil, fmt.Errorf("%s=%s, the list of this job's %s, cannot be read: %w (-launcher local runs on this machine alone)", v.name, path, v.of, prose.Cause(err))
		}
		a, err := ParseHosts(string(text))
		if err != nil {
			return nil, fmt.Errorf("%s=%s: %w", v.name, path, err)
		}
		if v.scheduler == "pbs" && a.PerNode == 1 {
			a.PerNode = 0 // one line for each node is what PBS writes for no wish at all
		}
		a.Scheduler = v.scheduler
		return a, nil
	}
	return nil, nil
}

// hostFiles are the variables that name the host file of a job: PBS's, and those by which Kubeflow's mpi-operator tells
// Open MPI, Intel MPI and Hydra of an MPIJob's workers.
var hostFiles = []struct{ name, of, scheduler string }{
	{"PBS_NODEFILE", "nodes", "pbs"},
	{"OMPI_MCA_orte_default_hostfile", "workers", "hostfile"},
	{"I_MPI_HYDRA_HOST_FILE", "workers", "hostfile"},
	{"HYDRA_HOST_FILE", "workers", "hostfile"},
}

// fromSlurm reads what salloc and sbatch set. SLURM_NTASKS is there only where the user
// asked for tasks; SLURM_TASKS_PER_NODE always is, and then means nothing.
func fromSlurm(getenv func(string) string) (*Allocation, error) {
	a := &Allocation{Scheduler: "slurm"}
	for _, v := range []struct {
		names []string
		to    *int
	}{
		{[]string{"SLURM_JOB_NUM_NODES", "SLURM_NNODES"}, &a.Nodes},
		{[]string{"SLURM_NTASKS_PER_NODE"}, &a.PerNode},
		{[]string{"SLURM_NTASKS", "SLURM_NPROCS"}, &a.Ranks},
		{[]string{"SLURM_CPUS_PER_TASK"}, &a.Cores},
	} {
		i := slices.IndexFunc(v.names, func(name string) bool { return getenv(name) != "" })
		if i < 0 {
			continue
		}
		n, err := strconv.Atoi(getenv(v.names[i]))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%s=%.64q is not a number of at least 1: does this environment come from Slurm? (-launcher local runs on this machine alone)", v.names[i], getenv(v.names[i]))
		}
		*v.to = n
	}
	if a.Nodes == 0 {
		return nil, fmt.Errorf("SLURM_JOB_ID is set, but SLURM_JOB_NUM_NODES is not: does this environment come from Slurm? (-launcher local runs on this machine alone)")
	}
	if step := getenv("SLURM_STEP_ID"); step != "" {
		a.Ranks = 0 // of the interactive step, not of the allocation
		if per := getenv("SLURM_TASKS_PER_NODE"); a.PerNode == 0 && per != "" && step != "0" {
			a.PerNode = evenTasks(per)
		}
	}
	if a.PerNode == 0 && a.Ranks > 0 && a.Ranks%a.Nodes == 0 {
		a.PerNode = a.Ranks / a.Nodes
	}
	return a, nil
}

// evenTasks reads "2(x4)", tasks per node and the number of such nodes: 2; 0 if nodes
// differ or have one each, which nobody asked for.
func evenTasks(s string) int {
	n, _, _ := strings.Cut(s, "(x")
	if per, err := strconv.Atoi(n); err == nil && per > 1 {
		return per
	}
	return 0
}

// most hosts, and the longest name of one, that a list may have.
const (
	mostHosts = 1 << 17
	longName  = 255
)

// ParseHosts reads a host file as Hydra, Open MPI, PALS and PBS have it: a host a
// line, perhaps with slots=N or :N, or on as many lines as it has slots. Comments start with #.
func ParseHosts(text string) (*Allocation, error) {
	a := &Allocation{Scheduler: "hostfile"}
	slots := map[string]int{}
	at := 0
	for line := range strings.Lines(text) {
		at++
		line, _, _ = strings.Cut(line, "#")
		words := strings.Fields(aroundEquals.ReplaceAllString(line, "="))
		if len(words) == 0 {
			continue
		}
		name, n, err := hostSlots(words)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", at, err)
		}
		if slots[name] == 0 {
			a.Hosts = append(a.Hosts, name)
		}
		if slots[name] += n; slots[name] > mostHosts || len(a.Hosts) > mostHosts {
			return nil, fmt.Errorf("line %d: more than %d hosts or slots", at, mostHosts)
		}
	}
	a.Nodes = len(a.Hosts)
	if a.Nodes == 0 {
		return nil, fmt.Errorf("it names no host")
	}
	a.PerNode = slots[a.Hosts[0]]
	for _, h := range a.Hosts {
		a.PerNode = min(a.PerNode, slots[h])
	}
	return a, nil
}

// aroundEquals is an equals sign with the blanks that Open MPI allows around it.
var aroundEquals = regexp.MustCompile(`\s*=\s*`)

// roomBeyond are Open MPI's words for the most ranks that a host may have.
var roomBeyond = []string{"max_slots", "max-slots", "slots_max", "max"}

// hostSlots reads one line: a name, and how many ranks it has room for.
func hostSlots(words []string) (name string, slots int, err error) {
	name, slots = words[0], 1
	number := ""
	if rest, bracketed := strings.CutPrefix(name, "["); bracketed { // an address of IPv6 with room: [fd00::1]:4
		address, room, closed := strings.Cut(rest, "]")
		slots, numbered := strings.CutPrefix(room, ":")
		if !closed || net.ParseIP(address) == nil || room != "" && (!numbered || slots == "") {
			return "", 0, fmt.Errorf("%.64q is not a host; an IPv6 address is written as fd00::1, or [fd00::1]:4 with slots",
				name)
		}
		name, number = address, slots
	} else if at := strings.LastIndexByte(name, ':'); at > 0 && strings.Count(name, ":") == 1 { // more of them: IPv6
		name, number = name[:at], name[at+1:]
	}
	for i, w := range words[1:] {
		key, value, assigned := strings.Cut(w, "=")
		switch {
		case assigned && key == "slots":
			number = value
			if number == "" {
				return "", 0, errors.New("slots= has no number")
			}
		case assigned && slices.Contains(roomBeyond, key): // for more ranks than there are slots, which bench does not start
		case !assigned && i == 0 && number == "":
			number = w
		default:
			return "", 0, fmt.Errorf("%.64q means nothing here; a line is h1, h1:4, h1 4 or h1 slots=4", w)
		}
	}
	if number != "" {
		if slots, err = strconv.Atoi(number); err != nil || slots < 1 || slots > mostHosts {
			return "", 0, fmt.Errorf("%.64q is not a number of slots", number)
		}
	}
	// The name becomes an argument of a launcher, which must not take it for a flag.
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-._:", r)
	}
	if strings.Count(name, ":") > 1 && net.ParseIP(name) == nil {
		return "", 0, fmt.Errorf("%.64q is not a host; an IPv6 address is written as fd00::1, or [fd00::1]:4 with slots",
			name)
	}
	if len(name) > longName || strings.HasPrefix(name, "-") ||
		strings.IndexFunc(name, func(r rune) bool { return !plain(r) }) >= 0 {
		return "", 0, fmt.Errorf("%.64q is not a host", name)
	}
	return name, slots, nil
}
