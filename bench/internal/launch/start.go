package launch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/goccl/goccl/bench/internal/hint"
	"github.com/goccl/goccl/ccl/boot"
	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/environ"
	"github.com/goccl/goccl/internal/files"
	"github.com/goccl/goccl/internal/subprocess"
)

// Exit is how a launcher ended, if not well.
type Exit struct {
	Launcher string
	Code     int // -1: by a signal
	// Said is set where the ranks have said why.
	Said bool
}

func (e *Exit) Error() string {
	if e.Code < 0 {
		return e.Launcher + ", which started the ranks, was ended by a signal"
	}
	return fmt.Sprintf("%s, which started the ranks, ended with exit code %d", e.Launcher, e.Code)
}

// parting is how long a launcher that has been told to end may take.
const parting = 10 * time.Second

// Run starts the ranks and waits for all of them. The error is a *boot.ExitError
// where they ran on this machine, an *Exit where a launcher had started them.
func (p *Plan) Run(ctx context.Context, stdout, stderr io.Writer) error {
	if p.DryRun {
		if err := p.refuseStart(); err != nil {
			return err
		}
		return p.Say(stdout)
	}
	if name := auth.Blank(append(os.Environ(), p.Env...)); name != "" {
		fmt.Fprintf(stderr, "bench: %s is set, but empty, which is no secret\n", name)
	}
	if p.Local {
		return p.spawn(ctx, stdout, stderr)
	}
	remove, sumOf, err := p.provide()
	if err != nil {
		return err
	}
	defer remove()
	if !p.Quiet {
		if err := p.Say(stdout); err != nil {
			return err
		}
	}
	env := p.environment(os.Environ(), sumOf)
	command := p.starter.command(p)
	heard := &hint.Watch{W: stderr}
	limited, cancel := context.WithCancel(ctx)
	defer cancel()
	// The launcher may end by itself. Hydra does not: the ranks that it could start wait
	// for the others.
	var lost atomic.Bool
	heard.Fatal = func() {
		lost.Store(true)
		time.AfterFunc(time.Second, cancel)
	}

	cmd := exec.CommandContext(limited, command[0], command[1:]...)
	cmd.Env, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = env, stdout, heard, subprocess.Apart(syscall.SIGTERM)
	if p.Stdin != nil && !terminal(p.Stdin) { // which would stop a launcher in its background
		cmd.Stdin = p.Stdin
	}
	cmd.Cancel = func() error { return terminate(cmd.Process) }
	cmd.WaitDelay = parting
	err = subprocess.Locked(func() error {
		if err := cmd.Start(); err != nil {
			return err
		}
		defer relay(cmd.Process)()
		return cmd.Wait()
	})
	if errors.Is(err, exec.ErrWaitDelay) { // it ended well; something that it left has its output, as an ssh master has
		err = nil
	}
	if p.spread != "" && (err != nil || !p.Self) { // otherwise the ranks have done it
		p.unspread(env)
	}
	if err == nil {
		return nil
	}
	for _, a := range heard.Advice() {
		fmt.Fprintln(stderr, "bench: hint:", a)
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return &Exit{Launcher: p.starter.path, Code: exit.ExitCode(), Said: heard.Said() || lost.Load()}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case lost.Load():
		return &Exit{Launcher: p.starter.path, Code: 1, Said: true}
	}
	return fmt.Errorf("starting %s: %w", p.starter.path, err)
}

// refuseStart is what boot.Spawn would refuse of the secret and of -logs.
func (p *Plan) refuseStart() error {
	if !p.Local {
		return nil
	}
	refused := func(what string, err error) error {
		return &boot.Error{Code: boot.Argument, Rank: -1, Size: -1, Peer: -1, Text: fmt.Sprintf("%s: %v", what, err),
			Err: err}
	}
	if _, err := auth.Provide(append(os.Environ(), p.Env...)); err != nil {
		return refused("the job's secret is refused", err)
	}
	if p.Logs == "" {
		return nil
	}
	there := p.Logs
	for _, err := os.Stat(there); errors.Is(err, fs.ErrNotExist) && there != filepath.Dir(there); _, err = os.Stat(there) {
		there = filepath.Dir(there)
	}
	if err := files.Writable(filepath.Join(there, ".goccl-bench-logs")); err != nil {
		return refused("the directory for the ranks' logs cannot be made", err)
	}
	return nil
}

// relay passes on to a launcher what somebody asks the ranks for, until stop is called. What asks for the end
// ends its context.
func relay(to *os.Process) (stop func()) {
	asked, over := make(chan os.Signal, 8), make(chan struct{})
	for _, sig := range subprocess.Wishes {
		if !signal.Ignored(sig) {
			signal.Notify(asked, sig)
		}
	}
	go func() {
		for {
			select {
			case sig := <-asked:
				subprocess.PassOn(sig, func(sig os.Signal) { to.Signal(sig) })
			case <-over:
				return
			}
		}
	}()
	return func() {
		signal.Stop(asked)
		close(over)
	}
}

// terminal reports whether f is one, or another device that is read as it is typed.
func terminal(f *os.File) bool {
	info, err := f.Stat()
	return err != nil || info.Mode()&os.ModeCharDevice != 0
}

// spawn starts the ranks on this machine.
func (p *Plan) spawn(ctx context.Context, stdout, stderr io.Writer) error {
	actAs := p.ActAs
	if actAs == 1 {
		actAs = 0 // this one, as it is
	}
	program, env := p.Program, append(os.Environ(), p.Env...)
	switch {
	case p.Bind == "core" && !p.Self:
		self, err := os.Executable()
		if err != nil {
			return fmt.Errorf("finding this program, to bind the ranks by: %w", err)
		}
		program = append([]string{self, execCommand, ""}, program...)
		fallthrough
	case p.Bind == "core", p.Bind == "auto" && p.Self:
		env = append(env, environ.BenchBind.Set(byRank))
	}
	command := boot.Command{
		N: p.Ranks, Path: program[0], Args: program[1:], Env: env, Hosts: actAs,
		Stdout: stdout, Stderr: stderr, Prefix: p.Prefix, KeepGoing: p.KeepGoing, Logs: p.Logs, Restart: p.Restart,
		Hall: p.Hall,
	}
	if p.Stdin != nil {
		command.Stdin = p.Stdin
	}
	return boot.Spawn(ctx, command)
}

// provide puts the program where all nodes see it.
func (p *Plan) provide() (remove func(), sumOf string, err error) {
	path := p.Program[0]
	if p.Self {
		if sumOf, err = sum(path); err != nil {
			return nil, "", fmt.Errorf("reading this program, to compare it on each node: %w", err)
		}
	}
	p.program = slices.Clone(p.Program)
	if p.shared == nil {
		return func() {}, sumOf, nil
	}
	var bench string
	var removeProgram, removeBench func()
	if p.program[0], removeProgram, err = share(path, p.shared, copyFile); err != nil || p.Self {
		return removeProgram, sumOf, err
	}
	// Another program does not look whether it is the right one: bench does, there, and
	// becomes it.
	self, err := os.Executable()
	if err == nil {
		sumOf, err = sum(path)
	}
	if err == nil {
		bench, removeBench, err = share(self, p.shared, copyFile)
	}
	if err != nil {
		removeProgram()
		return nil, "", err
	}
	p.program = append([]string{bench, execCommand, sumOf}, p.program...)
	return func() { removeProgram(); removeBench() }, "", nil
}

// unspread removes what srun has copied to each node.
func (p *Plan) unspread(env []string) {
	ctx, cancel := context.WithTimeout(context.Background(), parting)
	defer cancel()
	n := strconv.Itoa(p.Nodes)
	args := []string{"--nodes=" + n, "--ntasks=" + n, "--ntasks-per-node=1", "--overlap", "--export=ALL", "--input=none",
		"--quiet"}
	args = append(args, when(len(p.hosts) > 0, "--nodelist="+strings.Join(p.hosts, ","))...)
	cmd := exec.CommandContext(ctx, p.starter.path, append(args, "rm", "-f", p.spread)...)
	cmd.Env = env
	cmd.Run() // the job is over: a node that has gone is no news
}

// stepVars are what a Slurm step sets for its tasks, and what PMIs do: the next srun
// would take them as wishes, the next rank as its own.
var stepVars = []string{
	"SLURM_STEP_*", "SLURM_STEPID", "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_TASK_PID", "SLURM_GTIDS",
	"SLURM_NTASKS",
	"SLURM_NPROCS", "SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_NNODES", "SLURM_CPU_BIND*",
	"SLURM_MEM_BIND*", "SLURM_PTY_*", "SLURM_SRUN_*",
	"SLURM_DISTRIBUTION", "SLURM_LAUNCH_NODE_IPADDR", "SLURM_UMASK", "SLURM_CPUS_PER_TASK", "SRUN_CPUS_PER_TASK",
	"SLURM_EXPORT_ENV",
	"PMI_*", "PMIX_*",
}

// rankVars tell a rank who it is: none of it is true of the ranks to come.
var rankVars = []string{
	environ.Rank.Name, environ.Size.Name, environ.LocalRank.Name, environ.LocalSize.Name, environ.RootFD.Name,
	environ.BlameFD.Name, environ.HostID.Name, environ.Launcher.Name, environ.Newcomer.Name,
	"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE",
}

// environment is the launcher's, and so the ranks'.
func (p *Plan) environment(around []string, sumOf string) []string {
	drop := rankVars
	if p.starter.kind == "srun" {
		drop = append(slices.Clip(drop), stepVars...)
	}
	env := environ.Without(around, drop)
	for _, s := range p.settings {
		env = append(env, s.Name+"="+s.Value)
	}
	return withSecret(slices.Concat(
		env,
		when(sumOf != "", environ.BenchSum.Set(sumOf)),
		when(p.spread != "" && p.Self, environ.BenchSpread.Set(p.spread)),
		when(p.Bind == "core" && p.Self, environ.BenchBind.Set(byLocal)),
		when(p.root != "", environ.Root.Set(p.root)),
		p.Env,
	))
}

// withSecret gives the ranks a secret of their own, unless env has one. What it has, but is refused,
// stays: the ranks say why, and a file may be on the nodes alone.
func withSecret(env []string) []string {
	env, _ = auth.Provide(env)
	return env
}

// passed are the variables that Open MPI is told to pass on: ours and the libraries'.
func (p *Plan) passed() (names []string) {
	patterns := append(engine.Variables(), "GOCCL_*", "FI_*", "UCX_*", "ZE_*", "OMP_NUM_THREADS", "GOMAXPROCS",
		"GODEBUG", "LD_LIBRARY_PATH")
	given := map[string]bool{}
	for _, e := range p.Env {
		name, _, _ := strings.Cut(e, "=")
		given[name] = true
	}
	for _, e := range append(p.environment(os.Environ(), ""), environ.BenchSum.Set("")) {
		name, _, _ := strings.Cut(e, "=")
		if (given[name] || environ.Match(patterns, name)) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// rootAt is an address for rank 0, which a launcher that says nothing puts on the
// first host: a port by chance out of those that boot chooses from, too.
func rootAt(hosts []string, ports environ.PortRange) string {
	if len(hosts) == 0 {
		return ""
	}
	among := ports.Meeting()
	return net.JoinHostPort(hosts[0], strconv.Itoa(among.From+rand.IntN(among.Size())))
}
