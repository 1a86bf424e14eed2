package doctor

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/goccl/goccl/bench/internal/prose"
)

// The levels of a finding.
const (
	ok      = "ok"
	warning = "warning"
	failure = "error"
)

// Finding is the result of one check.
type Finding struct {
	Check  string `json:"check"`
	Level  string `json:"level"` // ok, warning or error
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"`
}

// exam is all that is known about a job.
type exam struct {
	launcher string
	ranks    []*facts
	routes   []route
	found    []Finding
}

func (e *exam) say(check, level, remedy, format string, args ...any) {
	e.found = append(e.found, Finding{check, level, fmt.Sprintf(format, args...), remedy})
}

// leaders are the first ranks of the hosts.
func (e *exam) leaders() []*facts {
	return slices.DeleteFunc(slices.Clone(e.ranks), func(f *facts) bool { return !f.Leader })
}

// ofHost are the ranks of a host.
func (e *exam) ofHost(host string) []*facts {
	return slices.DeleteFunc(slices.Clone(e.ranks), func(f *facts) bool { return f.Host != host })
}

// checks are all of them, in the order in which they are told.
var checks = []func(*exam){
	(*exam).launch, (*exam).nodes, (*exam).program, (*exam).kernels, (*exam).mpi, (*exam).worlds, (*exam).vendors,
	(*exam).deviceCount,
	(*exam).names, (*exam).named, (*exam).network, (*exam).shm, (*exam).memlock, (*exam).files,
	(*exam).affinity, (*exam).modes, (*exam).quota, (*exam).load, (*exam).unreadable, (*exam).differing, (*exam).harmful,
	(*exam).logged, (*exam).spares,
}

// diagnose runs all checks.
func (e *exam) diagnose() []Finding {
	for _, check := range checks {
		check(e)
	}
	return e.found
}

func (e *exam) launch() {
	if e.launcher == "none" {
		e.say("launcher", ok, "", "none: one process")
		return
	}
	e.say("launcher", ok, "", "%s: all %d ranks have met", e.launcher, len(e.ranks))
}

func (e *exam) nodes() {
	perHost := map[string]int{}
	for _, f := range e.ranks {
		perHost[f.Host]++
	}
	least, most := len(e.ranks), 0
	for _, n := range perHost {
		least, most = min(least, n), max(most, n)
	}
	hosts := slices.Sorted(maps.Keys(perHost))
	if least != most {
		remedy := "start as many ranks on each: -ppn"
		if e.has("nccl") {
			remedy += "; NCCL 2.31 is known to hang in its start otherwise (its issue 2385)"
		}
		e.say("nodes", warning, remedy, "%d nodes have from %d to %d ranks: collectives wait for the fullest", len(hosts),
			least, most)
		return
	}
	e.say("nodes", ok, "", "%d with %d ranks each: %s", len(hosts), most, short(hosts))
}

func (e *exam) program() {
	e.alike("program", failure, "all nodes must run the same build: copy it anew, or name a shared directory with -share", e.ranks,
		func(f *facts) string { return f.Program })
}

func (e *exam) kernels() {
	for _, what := range []string{"cpu", "cores", "kernel", "memory"} {
		e.alike(what, warning, "the slowest node sets the pace: leave nodes that differ out", e.leaders(),
			func(f *facts) string { return f.Print[what] })
	}
}

// alike finds out whether a value is the same everywhere.
func (e *exam) alike(check, level, remedy string, among []*facts, of func(*facts) string) {
	who := map[string][]string{}
	for _, f := range among {
		v := of(f)
		if len(who[v]) == 0 || who[v][len(who[v])-1] != f.Host {
			who[v] = append(who[v], f.Host)
		}
	}
	values := slices.Sorted(maps.Keys(who))
	if len(values) == 1 {
		if values[0] != "" {
			e.say(check, ok, "", "%s", values[0])
		}
		return
	}
	parts := prose.Names(values, func(v string) string { return orNone(v) + " on " + short(who[v]) })
	e.say(check, level, remedy, "differs: %s", strings.Join(parts, "; "))
}

// mpi compares what started the ranks with the MPI that they would load: an Open MPI
// under MPICH's mpiexec is as many jobs of one rank.
func (e *exam) mpi() {
	for _, f := range e.leaders() {
		for _, l := range f.Libraries {
			openMPI := strings.Contains(l.Path, "openmpi") || strings.HasSuffix(l.Path, ".so.40")
			if l.Name == "mpi" && (e.launcher == "pmi" || e.launcher == "pals") && openMPI {
				e.say("mpi", warning, "load the module of the MPI whose mpiexec this is, or set GOCCL_MPI_LIB to its library; this counts for -backend mpi only",
					"%s: the first MPI found is Open MPI (%s), but the launcher is MPICH's kind: with it each rank would be alone",
					f.Host, l.Path)
				return
			}
		}
	}
}

// vendors compares the libraries that hosts have.
func (e *exam) vendors() {
	names := map[string]bool{}
	for _, f := range e.leaders() {
		for _, l := range f.Libraries {
			names[l.Name] = true
			if l.Version == "missing" {
				e.say("library "+l.Name, failure, "fix or unset the variable that names it", "%s: %s is not there", f.Host, l.Path)
			}
		}
	}
	if len(names) == 0 {
		e.say("libraries", ok, "", "no vendor's library is here; the cpu engine needs none")
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		e.alike("library "+name, failure, "all ranks must load the same: load the same modules on all nodes", e.leaders(),
			func(f *facts) string {
				for _, l := range f.Libraries {
					if l.Name == name {
						return l.Version
					}
				}
				return ""
			})
	}
}

func (e *exam) deviceCount() {
	e.alike("devices", warning, "a node with fewer devices than others may have a broken one: leave it out", e.leaders(),
		func(f *facts) string {
			vendors := slices.Sorted(maps.Keys(f.Devices))
			return cmp.Or(strings.Join(prose.Names(vendors,
				func(v string) string { return fmt.Sprintf("%d %s", f.Devices[v], v) }), ", "), "none")
		})
	for _, f := range e.leaders() {
		total := 0
		for _, n := range f.Devices {
			total += n
		}
		if n := len(e.ofHost(f.Host)); total > 0 && n > total {
			e.say("devices", warning, "-ppn "+strconv.Itoa(total)+
				"; on Intel GPUs ZE_FLAT_DEVICE_HIERARCHY=FLAT makes each tile a device",
				"%s: %d ranks share %d devices", f.Host, n, total)
			break
		}
	}
	for _, f := range e.leaders()[:min(1, len(e.leaders()))] {
		for _, line := range f.Topology {
			e.say("topology", ok, "", "%s: %s", f.Host, line)
		}
	}
}

// short is a list of hosts that fits a line.
func short(hosts []string) string {
	const most = 4
	if len(hosts) <= most {
		return strings.Join(hosts, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(hosts[:most], ", "), len(hosts)-most)
}
