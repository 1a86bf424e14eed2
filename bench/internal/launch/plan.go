package launch

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/goccl/goccl/bench/internal/machine"
	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/profile"
	"github.com/goccl/goccl/bench/internal/prose"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/environ"
	"github.com/goccl/goccl/internal/files"
	"github.com/goccl/goccl/internal/slurm"
)

// Order is what is to be run as ranks, and how.
type Order struct {
	option.Job
	NP        int
	NPGiven   bool
	ActAs     int      // on this machine: act as so many hosts
	Program   []string // a path, and arguments
	Self      bool     // the program is this one, which calls Verify and Bind
	Env       []string // NAME=VALUE, in addition to this process's
	KeepGoing bool     // a rank that fails does not end the others
	Spares    int      // so many of NP wait to replace one that is lost
	Restart   int      // so often in a row a rank that dies is started again
	Hall      string   // where to listen for processes that start late; "" for nowhere, or a free port
	Logs      string   // a directory for a file of each rank's output
	Stdin     *os.File // the input of rank 0; nil for none
	Prefix    bool     // each line begins with its rank
}

// Plan is how an Order will be carried out.
type Plan struct {
	Order
	Local                 bool // on this machine alone, without a launcher
	Nodes, PerNode, Ranks int

	why      string // so many ranks
	alloc    *Allocation
	starter  *starter
	machine  *profile.Profile
	hosts    []string // for the launcher; nil: it knows them itself
	hostfile string
	cores    int // of each rank
	flags    []string
	flagsWhy string
	settings []profile.Setting
	program  []string
	spread   string   // where srun is to copy the program on each node
	shared   []string // or the directories to copy it to, the first that takes it; nil: it stays
	root     string   // rank 0's address, where the launcher's variables do not lead to it
}

// Plan finds out where and how ranks are to be started: inside an allocation, or
// with a host file, through its launcher; else on this machine.
func (o Order) Plan(ctx context.Context, getenv func(string) string) (*Plan, error) {
	if _, err := o.profile(getenv, nil); err != nil {
		return nil, err // wherever it runs: the next run may be in an allocation
	}
	p := &Plan{Order: o, Local: true, Nodes: 1, PerNode: o.NP, Ranks: o.NP, program: o.Program}
	if o.Launcher == "local" || o.ActAs > 1 {
		return p, o.refuseNodes("-launcher local and -hosts stay on this machine; leave it out")
	}
	var err error
	if o.Hostfile != "" {
		p.alloc, err = readHosts(o.Hostfile)
	} else {
		p.alloc, err = Find(getenv, readFile)
	}
	if err != nil {
		return nil, err
	}
	if p.alloc == nil {
		switch o.Launcher {
		case "auto":
			return p, o.refuseNodes("there are no nodes to choose from: start an allocation (salloc, qsub), or give -hostfile")
		case "srun":
			return nil, errors.New("-launcher srun: not inside a Slurm allocation; start one with salloc or sbatch")
		}
		p.alloc = &Allocation{Nodes: 1}
	}
	if o.Hostfile != "" && o.Launcher == "auto" && allHere(p.alloc.Hosts) {
		p.machine = &profile.Profile{}
		// under however many names
		p.alloc = &Allocation{Scheduler: "hostfile", Nodes: 1, PerNode: p.alloc.Nodes * p.alloc.PerNode}
		return p, p.shape(getenv)
	}
	p.Local = false
	if o.Logs != "" {
		return nil, fmt.Errorf("-logs %s: a log for each rank is for ranks on this machine (-launcher local); elsewhere the launcher writes them: srun --output, mpiexec -outfile-pattern or --output-filename", o.Logs)
	}
	if o.Restart > 0 || o.Hall != "" {
		return nil, errors.New("-restart and -hall are for ranks on this machine (-launcher local), which bench starts itself; elsewhere set GOCCL_HALL to a directory that all hosts share, and have the scheduler start processes again")
	}
	if p.machine, err = o.profile(getenv, p.alloc.Hosts); err != nil {
		return nil, err
	}
	if err := p.shape(getenv); err != nil {
		return nil, err
	}
	if p.starter, err = findStarter(ctx, o.Launcher, p.alloc.Scheduler, p.machine); err != nil {
		return nil, err
	}
	p.place(getenv)
	return p, cmp.Or(p.refuseAddresses(), p.refuseShare())
}

// refuseAddresses is the error for IPv6 addresses as hosts of a launcher that cuts each host at its first colon, as
// MPICH's Hydra 4.0 and Open MPI 4.1 do, in brackets too.
func (p *Plan) refuseAddresses() error {
	if p.starter.kind != "hydra" && p.starter.kind != "openmpi" {
		return nil
	}
	for _, h := range p.hosts {
		if strings.Contains(h, ":") {
			return fmt.Errorf("%s: %s takes no IPv6 addresses; give the host a name that resolves to the address, in /etc/hosts or DNS", h, p.starter.path)
		}
	}
	return nil
}

// refuseNodes is the error for flags that need nodes.
func (o Order) refuseNodes(why string) error {
	for _, f := range []struct {
		given bool
		text  string
	}{
		{o.Nodes > 0, "-nodes " + strconv.Itoa(o.Nodes)}, {o.PPN > 0, "-ppn " + strconv.Itoa(o.PPN)},
		{o.Hostfile != "", "-hostfile " + o.Hostfile},
	} {
		if f.given {
			return fmt.Errorf("%s: %s", f.text, why)
		}
	}
	return nil
}

// readFile reads a list of nodes.
func readFile(name string) ([]byte, error) { return files.Read(name, 64<<20) }

func readHosts(file string) (*Allocation, error) {
	text, err := readFile(file)
	if err != nil {
		return nil, fmt.Errorf("-hostfile %s: %w", file, prose.Cause(err))
	}
	a, err := ParseHosts(string(text))
	if err != nil {
		return nil, fmt.Errorf("-hostfile %s: %w", file, err)
	}
	return a, nil
}

func (o Order) profile(getenv func(string) string, hosts []string) (*profile.Profile, error) {
	if o.Profile == "auto" || o.Profile == "" {
		return profile.Of(getenv, hosts), nil
	}
	return profile.Named(o.Profile)
}

// shape decides on how many nodes, and how many ranks on each.
func (p *Plan) shape(getenv func(string) string) error {
	a := p.alloc
	p.Nodes = a.Nodes
	if p.Order.Nodes > 0 {
		if p.Nodes = p.Order.Nodes; p.Nodes > a.Nodes {
			return fmt.Errorf("-nodes %d: there are %d in %s", p.Nodes, a.Nodes, p.source())
		}
	}
	p.Ranks = 0
	byMachine, machineWhy := 0, ""
	if p.machine.Ranks != nil {
		byMachine, machineWhy = p.machine.Ranks(getenv)
	}
	switch {
	case p.PPN > 0:
		p.PerNode, p.why = p.PPN, "-ppn"
	case p.NPGiven:
		if p.Order.Nodes == 0 {
			p.Nodes = min(p.Nodes, p.NP)
		}
		p.PerNode, p.why = (p.NP+p.Nodes-1)/p.Nodes, "-np"
	case a.PerNode > 0:
		p.PerNode, p.why = a.PerNode, "as "+p.source()+" has it"
	case a.Ranks > 0:
		p.PerNode, p.why = (a.Ranks+a.Nodes-1)/a.Nodes, "as "+p.source()+" has it"
		if p.Nodes == a.Nodes {
			p.Ranks = a.Ranks
		}
	case byMachine > 0:
		p.PerNode, p.why = byMachine, machineWhy
	default:
		p.PerNode, p.why = min(coresOfNode(getenv), 8), "cores of a node, at most 8"
	}
	if p.NPGiven {
		p.Ranks = p.NP
	} else if p.Ranks == 0 {
		p.Ranks = p.Nodes * p.PerNode
	}
	switch {
	case p.Ranks > p.Nodes*p.PerNode:
		return fmt.Errorf("-np %d: %d nodes with -ppn %d take %d ranks; leave one of the flags out", p.Ranks, p.Nodes,
			p.PerNode, p.Nodes*p.PerNode)
	case p.Ranks < p.Nodes && p.Order.Nodes > 0:
		return fmt.Errorf("-np %d: fewer than -nodes %d", p.Ranks, p.Nodes)
	}
	p.Nodes = (p.Ranks + p.PerNode - 1) / p.PerNode
	if p.Ranks == a.Ranks && p.PPN == 0 && !p.NPGiven {
		p.Nodes = a.Nodes // an uneven wish still uses every node
	}
	return nil
}

// source names where the nodes come from.
func (p *Plan) source() string {
	switch p.alloc.Scheduler {
	case "slurm":
		return "the Slurm allocation"
	case "pbs":
		return "the PBS job"
	case "hostfile":
		return "the host file"
	}
	return "this machine"
}

// coresOfNode is how many cores Slurm gave of a node, or this machine has.
func coresOfNode(getenv func(string) string) int {
	if n, ok := slurm.OnNode(getenv("SLURM_JOB_CPUS_PER_NODE"), 0); ok && n > 0 {
		return n
	}
	return runtime.NumCPU()
}

// place settles what the launcher is told.
func (p *Plan) place(getenv func(string) string) {
	p.cores = p.alloc.Cores
	if p.alloc.Hosts != nil {
		p.hosts = p.alloc.Hosts[:p.Nodes]
	}
	switch {
	case p.Hostfile != "":
		p.hostfile = p.Hostfile
	case p.alloc.Scheduler == "pbs":
		p.hostfile = getenv("PBS_NODEFILE")
	}
	p.flags, p.flagsWhy = p.machine.Flags(getenv, p.starter.kind, p.PerNode)
	p.bindFlags()
	p.carry(getenv)
	if p.starter.kind == "srun" && p.Nodes > 1 && !resolves(getenv("SLURM_JOB_NODELIST")) {
		p.flags = append(p.flags, "--mpi=pmi2")
		p.flagsWhy = strings.TrimPrefix(p.flagsWhy+"; the nodes' names do not resolve: ranks meet over Slurm's PMI-2", "; ")
	}
	p.settings = p.machine.Settings(getenv, p.Nodes)
	if p.starter.kind == "openmpi" && p.Nodes > 1 && environ.Root.Text(getenv) == "" && environ.Store.Text(getenv) == "" {
		// which Check has looked at
		ports, _ := environ.Ports.From(environ.Of(append([]string{environ.Ports.Set(environ.Ports.Text(getenv))}, p.Env...)))
		p.root = rootAt(p.hosts, ports)
	}
}

// carry settles how the nodes get a program that only this one sees: srun copies it, or
// it is copied to where all see it.
func (p *Plan) carry(getenv func(string) string) {
	switch {
	case p.Share != "":
		p.shared = []string{p.Share}
	case !local(p.Program[0]), p.hosts != nil && allHere(p.hosts):
	case p.starter.kind == "srun":
		p.spread = "/tmp/goccl-bench-" + hex.EncodeToString(auth.NewSecret()[:8])
	default:
		p.shared = append([]string{}, places(getenv)...)
	}
}

// resolves reports whether the first host of a list leads to an address, as far as it is known here.
func resolves(list string) bool {
	hosts, err := slurm.Hosts(list)
	if err != nil || len(hosts) == 0 {
		return true
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_, err = net.DefaultResolver.LookupHost(ctx, hosts[0])
	return err == nil
}

// bindFlags makes -bind count against the machine's profile.
func (p *Plan) bindFlags() {
	if p.Bind == "auto" {
		return
	}
	none := map[string][]string{"srun": {"--cpu-bind=none"}, "pals": {"--cpu-bind", "none"}}[p.starter.kind]
	var kept []string
	for i := 0; i < len(p.flags); i++ {
		switch f := p.flags[i]; {
		case f == "--cpu-bind" || f == "-d":
			i++
		case strings.HasPrefix(f, "--cpu-bind="):
		default:
			kept = append(kept, f)
		}
	}
	p.flags, p.flagsWhy = append(kept, none...), "-bind "+p.Bind
}

// Say writes what will be done, as comments.
func (p *Plan) Say(w io.Writer) error {
	if p.Local {
		if !p.DryRun {
			return nil
		}
		why := "there is no allocation"
		if p.Hostfile != "" {
			why = "the host file names no other"
		}
		_, err := fmt.Fprintf(w, "# %s on this machine, started by bench itself: %s\n", prose.Count(p.Ranks, "rank"), why)
		return err
	}
	var b strings.Builder
	fmt.Fprintf(&b, "# launch: %d ranks on %s, %d each (%s), by %s (%s), profile %s\n", p.Ranks,
		prose.Count(p.Nodes, "node"), p.PerNode, p.why, p.starter.path, p.starter.kind, p.machine.Name)
	if p.flagsWhy != "" && len(p.flags) > 0 {
		fmt.Fprintf(&b, "# launch: %s: %s\n", strings.Join(p.flags, " "), p.flagsWhy)
	}
	for _, s := range p.settings {
		fmt.Fprintf(&b, "# launch: %s=%s: %s\n", s.Name, s.Value, s.Reason)
	}
	switch {
	case p.spread != "":
		fmt.Fprintf(&b, "# launch: only this node sees the program: srun copies it to %s on each, and it is removed there\n", p.spread)
	case p.shared != nil && p.program[0] == p.Program[0]:
		fmt.Fprintf(&b, "# launch: only this node sees the program: it will be copied to the first of these that takes it, and removed: %s\n", strings.Join(p.shared, " "))
	case p.shared != nil:
		fmt.Fprintf(&b, "# launch: only this node sees the program: copied to %s until the job is over\n",
			filepath.Dir(p.program[0]))
	}
	var words []string
	for _, w := range p.starter.command(p) {
		if p.DryRun && p.Self && strings.TrimLeft(w, "-") == "dry-run" {
			continue // what is printed is to be run
		}
		words = append(words, machine.Quote(w))
	}
	fmt.Fprintf(&b, "# launch: %s\n", strings.Join(words, " "))
	_, err := io.WriteString(w, b.String())
	return err
}
