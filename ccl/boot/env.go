package boot

import (
	"context"
	"crypto/sha256"
	"errors"
	"net"
	"os"
	"strconv"

	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/environ"
	"github.com/goccl/goccl/internal/simhost"
	"github.com/goccl/goccl/internal/slurm"
)

// Env returns the bootstrap of the job in which a launcher started this process. It calls Detect
// and then finds rank 0 in the way that this launcher offers; the package's table lists the
// variables. Under no launcher the job has one rank.
func Env(ctx context.Context) (*Boot, error) {
	v := &vars{getenv: os.Getenv, environ: os.Environ(), readFile: readFile}
	if h := simhost.Of(ctx); h != nil {
		v.environ = append(v.environ, h.Environ()...)
		v.getenv = environ.Of(v.environ)
	}
	return env(ctx, v)
}

func env(ctx context.Context, v *vars) (*Boot, error) {
	if err := noContext(ctx); err != nil {
		return nil, err
	}
	// Before anything else: what is misspelt here would start another job than was meant.
	if _, err := environ.Check(v.environ, environ.Job, environ.Secret); err != nil {
		return nil, fault(Argument, "%v", err)
	}
	if id := environ.Newcomer.Text(v.getenv); id != "" {
		// by itself it would be a job of one rank, and write over what the job has saved
		return nil, fault(Argument, "this process was started again while its job runs (%s): only ccl.Join can wait for the job's Grow, and %s or Options.Store says where",
			environ.Newcomer.Set(id), environ.Hall.Name)
	}
	l, err := detect(v)
	if err != nil {
		return nil, err
	}
	warnUnseen(v, l, buildMode())
	m := &joinConfig{job: l.Job, rank: l.Rank, size: l.Size, hostID: environ.HostID.Text(v.getenv)}
	if err := m.prepare(ctx, v, l); err != nil {
		return nil, asError(err).of(l.Rank, l.Size)
	}
	return m.join(ctx)
}

// prepare finds out what m needs to join.
func (m *joinConfig) prepare(ctx context.Context, v *vars, l Launch) (err error) {
	if m.limit, err = environ.BootTimeout.From(v.getenv); err != nil {
		return fault(Argument, "%v", err)
	} else if m.limit == 0 {
		m.limit = DefaultLimit
	}
	given, err := auth.FromEnv(v.getenv)
	if err != nil {
		return secretFault(err)
	}
	if m.secret = auth.Given(given); m.size == 1 {
		return nil
	}
	if m.secret.IsZero() {
		m.secret = auth.Given(craySecret(v, l))
	}
	if err := m.locate(ctx, v, l); err != nil {
		return err
	}
	if !m.secret.IsZero() || m.made {
		return nil
	}
	if dir := secretDir(v); dir != "" && m.job != "" {
		m.keepSecretIn(dir)
		return nil
	}
	m.secret, err = auth.None(v.environ)
	return secretFault(err)
}

// settle completes the secret of a job that was not started by Env: own, else what the environment
// has, else none, unless one is made where the ranks meet. A job of one rank opens no port.
func (m *joinConfig) settle(own []byte) (err error) {
	if m.size == 1 {
		m.secret = auth.Given(own)
		return nil
	}
	if m.made {
		own, err = auth.In(os.Environ())
		m.secret = auth.Given(own)
	} else {
		m.secret, err = auth.Settle(own, os.Environ())
	}
	return secretFault(err)
}

// secretFault is what is wrong with the job's secret, nil for nil.
func secretFault(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, auth.ErrRequired):
		return fault(Unauthorized, "%v", err)
	}
	return fault(Argument, "the job's secret is refused: %v", err)
}

// craySecret makes the job's secret of the one that Cray's PMI gives to an application.
func craySecret(v *vars, l Launch) []byte {
	shared := v.getenv("PMI_SHARED_SECRET")
	if shared == "" || l.Launcher != "pals" && !v.has("PMI_CONTROL_PORT") {
		return nil
	}
	sum := sha256.Sum256([]byte("goccl secret " + l.Job + " " + shared))
	return sum[:]
}

// locate says where the ranks meet: where the user says, else where the launcher's
// variables lead all ranks alike.
func (m *joinConfig) locate(ctx context.Context, v *vars, l Launch) error {
	if root := environ.Root.Text(v.getenv); root != "" {
		if err := m.at(root); err != nil {
			return err
		}
		m.inherit(environ.RootFD.Text(v.getenv), root)
		return nil
	}
	if dir := environ.Store.Text(v.getenv); dir != "" {
		m.store(dir, l)
		return nil
	}
	switch l.Launcher {
	case "pmi":
		if v.has("PMI_FD") {
			return m.overPMI(ctx, v.getenv("PMI_FD"), l)
		}
		if s := readSlurm(v); hasStep(v) && s.Rank == l.Rank && s.Size == l.Size {
			return m.inStep(v, s)
		}
	case "slurm":
		return m.inStep(v, l)
	case "pals":
		hosts, where := palsHosts(v)
		m.absent.where = where
		if l.Nodes == 1 {
			return m.alike(v, l)
		}
		if len(hosts) > 0 && l.Job != "" {
			m.derived(hosts, 0)
			return nil
		}
	case "torchrun":
		if l.Nodes == 1 {
			return m.alike(v, l)
		}
		if v.has("MASTER_ADDR") {
			addr, err := masterOf(v, "MASTER_ADDR", "MASTER_PORT").host()
			if err != nil {
				return err
			}
			// The agent has a server of its own at MASTER_PORT.
			m.derived([]string{addr}, v.maybe("MASTER_PORT"))
			return nil
		}
	case "openmpi":
		if l.Nodes == 1 && l.Job != "" {
			return m.alike(v, l)
		}
	case "pet":
		if at, ok := petMaster(v); ok {
			return m.atMaster(v, l, at)
		}
	case "env", "kubernetes":
		if v.has("MASTER_ADDR", "MASTER_PORT") {
			return m.atMaster(v, l, masterOf(v, "MASTER_ADDR", "MASTER_PORT"))
		}
		if l.Launcher == "kubernetes" && m.amongPods(v) {
			return nil
		}
	}
	return fault(Argument, "%s; set one of these on all ranks: GOCCL_ROOT=host:port, rank 0's host and a free port there, or GOCCL_STORE=/dir, a directory that all hosts share",
		nothingToGoBy[l.Launcher])
}

// nothingToGoBy says why a launcher's variables do not lead to rank 0.
var nothingToGoBy = map[string]string{
	"goccl":      "GOCCL_RANK and GOCCL_SIZE say which rank this is, but not where rank 0 is",
	"env":        "RANK and WORLD_SIZE say which rank this is, but not where rank 0 is (MASTER_ADDR and MASTER_PORT would)",
	"torchrun":   "torchrun set no MASTER_ADDR, which says where rank 0 is",
	"openmpi":    "Open MPI's variables do not say where rank 0 is",
	"pmi":        "this process manager set no PMI_FD, through which ranks find rank 0",
	"pals":       "neither PALS_APINFO nor PBS_NODEFILE says where rank 0 is",
	"pet":        "neither PET_MASTER_ADDR and PET_MASTER_PORT nor PET_RDZV_ENDPOINT says where rank 0 is",
	"kubernetes": "this pod has no name in a headless service, so the name of the pod with JOB_COMPLETION_INDEX=0 is unknown (give the pods a subdomain: the name of a headless service)",
	"slurm":      "SLURM_STEP_NODELIST does not say where rank 0 is",
}

// alike is the meeting on one host of a job whose ranks know nothing but its name.
func (m *joinConfig) alike(v *vars, l Launch) error {
	if meetLocally {
		if err := auth.Nameless(); err != nil && !m.secret.Known() {
			return fault(Unauthorized, "this job has no secret, and its ranks cannot be told from strangers: %v", err)
		}
		m.made = true
		m.here(v.getenv, l.Launcher)
		return nil
	}
	m.derived([]string{"127.0.0.1"}, 0)
	return nil
}

// inStep is the meeting of a Slurm step: on its first host, where rank 0 is.
func (m *joinConfig) inStep(v *vars, l Launch) error {
	m.job = l.Job
	if l.Nodes == 1 {
		return m.alike(v, l)
	}
	hosts, err := slurm.Hosts(v.getenv("SLURM_STEP_NODELIST"))
	if err != nil {
		return fault(Argument, "SLURM_STEP_NODELIST: %v", err)
	}
	if len(hosts) == 0 {
		return fault(Argument, "SLURM_STEP_NODELIST is empty; set GOCCL_ROOT=host:port or GOCCL_STORE=/dir for all ranks")
	}
	m.derived(hosts[:1], 0)
	find := m.find
	m.find = func() (point, error) {
		p, err := find()
		p.final = true
		return p, err
	}
	return nil
}

// inherit makes rank 0 listen at a socket that Spawn opened for it, so that nobody
// can take the port in between. It stays open for the next Env of this process.
func (m *joinConfig) inherit(fd, root string) {
	n, err := strconv.Atoi(fd)
	if err != nil || m.rank != 0 {
		return
	}
	open := m.listen
	m.listen = func(ctx context.Context) (net.Listener, auth.Secret, error) {
		l, err := inheritedListener(n)
		if err == nil && l.Addr().String() == root {
			return l, m.secret, nil
		}
		if err == nil {
			l.Close()
		}
		// It was for another process, whose child this is.
		return open(ctx)
	}
}

// errNoInherit is what inheritedListener says where a process inherits nothing.
var errNoInherit = errors.New("no inherited socket")
