package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/goccl/goccl/test/internal/measure"
)

// peer is a program that measures: a library, or goccl in one of its ways.
type peer struct {
	name    string
	needs   []string // of what was built; without one of them the peer is left out
	command func(b *builder, ranks int) []string
	env     []string
}

// builder has built what can be built here.
type builder struct {
	dir  string
	self string
	have map[string]bool // openmpi, mpich, gloo, limits, kernels, engine; lab
}

// build compiles the peers that are installed.
func build(dir string) (*builder, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	src, err := sources()
	if err != nil {
		return nil, err
	}
	b := &builder{dir: dir, self: self, have: map[string]bool{"lab": lab != ""}}
	for _, p := range []struct {
		name, needs string
		command     []string
	}{
		{"openmpi", "openmpi-bin libopenmpi-dev", []string{"mpicc.openmpi", "-O2", filepath.Join(src, "mpi_bench.c")}},
		{"mpich", "mpich libmpich-dev", []string{"mpicc.mpich", "-O2", filepath.Join(src, "mpi_bench.c")}},
		{"gloo", "g++ libgloo-dev", []string{"g++", "-std=c++17", "-O3", "-march=native", "-w",
			filepath.Join(src, "gloo_bench.cc"), "-lgloo", "-lpthread"}},
		{"limits", "gcc", []string{"gcc", "-O3", "-march=native", filepath.Join(src, "limits.c"), "-lpthread"}},
		{"kernels", "go", []string{"go", "test", "-c", "github.com/goccl/goccl/internal/reduce"}},
		// this program, with the engine mpi
		{"engine", "gcc libc6-dev", []string{"env", "CGO_ENABLED=1", "go", "build", "-tags", "mpi"}},
	} {
		if _, err := exec.LookPath(p.command[0]); err != nil {
			fmt.Fprintf(os.Stderr, "peers: no %s here (Debian: apt-get install %s)\n", p.name, p.needs)
			continue
		}
		cmd := exec.Command(p.command[0], append(p.command[1:], "-o", filepath.Join(dir, p.name))...)
		cmd.Dir = filepath.Dir(src)
		if out, err := cmd.CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "peers: %s does not build (Debian: apt-get install %s): %s\n", p.name, p.needs,
				firstLine(out))
			continue
		}
		b.have[p.name] = true
	}
	return b, nil
}

func (b *builder) has(p peer) bool {
	return !slices.ContainsFunc(p.needs, func(name string) bool { return !b.have[name] })
}

func firstLine(b []byte) string {
	line, _, _ := strings.Cut(string(b), "\n")
	return line
}

// sources is where this package's C programs lie.
func sources() (string, error) {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/goccl/goccl/test/peers").Output()
	if err != nil {
		return "", errors.New("run this inside the repository: its C programs are compiled from there")
	}
	return filepath.Join(strings.TrimSpace(string(out)), "c"), nil
}

// The peers, each as its users would run it, with its ranks bound to cores where there are enough.

func openmpi(name string, extra ...string) peer {
	return peer{name: name, needs: []string{"openmpi"}, command: func(b *builder, ranks int) []string {
		return append(append(underOpenMPI(ranks), extra...), filepath.Join(b.dir, "openmpi"))
	}}
}

func underOpenMPI(ranks int) []string {
	c := []string{"mpirun.openmpi", "--bind-to", "core", "-np", strconv.Itoa(ranks)}
	if ranks > runtime.NumCPU() {
		c = []string{"mpirun.openmpi", "--oversubscribe", "--bind-to", "none", "-np", strconv.Itoa(ranks)}
	}
	return c
}

func mpich(env ...string) peer {
	return peer{name: "MPICH", needs: []string{"mpich"}, env: env, command: func(b *builder, ranks int) []string {
		return append(underMPICH(ranks), filepath.Join(b.dir, "mpich"))
	}}
}

func underMPICH(ranks int) []string {
	bind := "core"
	if ranks > runtime.NumCPU() {
		bind = "none"
	}
	return []string{"mpirun.mpich", "-bind-to", bind, "-np", strconv.Itoa(ranks)}
}

// engine is goccl's engine mpi, launched and bound as the C program that it is compared with.
func engine(mpi string, under func(ranks int) []string) peer {
	return peer{name: "goccl", needs: []string{"engine", mpi}, command: func(b *builder, ranks int) []string {
		return append(under(ranks), filepath.Join(b.dir, "engine"), "measure", "-backend", "mpi")
	}}
}

var gloo = peer{name: "Gloo", needs: []string{"gloo"}, command: func(b *builder, ranks int) []string {
	return []string{filepath.Join(b.dir, "gloo"), "-n", strconv.Itoa(ranks), "-algo", "all"}
}}

var (
	ompiUCX = []string{"--mca", "pml", "ucx", "--mca", "pml_ucx_tls", "any", "--mca", "pml_ucx_devices", "any", "-x",
		"UCX_TLS=sm,self"}
	ompiTCP = []string{"--mca", "pml", "ob1", "--mca", "btl", "tcp,self", "--mca", "btl_tcp_if_include", "lo"}

	shared   = []peer{openmpi("Open MPI"), openmpi("Open MPI/UCX", ompiUCX...), mpich(), gloo}
	mpis     = []peer{shared[0], shared[2]}
	loopback = []peer{openmpi("Open MPI", ompiTCP...),
		mpich("MPIR_CVAR_NOLOCAL=1", "UCX_TLS=tcp,self", "UCX_NET_DEVICES=lo"), gloo}
)

// goccl runs this program as a job of its own ranks.
func goccl(apart bool, args ...string) func(*builder, int) []string {
	return func(b *builder, ranks int) []string {
		hosts := 0
		if apart {
			hosts = ranks
		}
		return measure.Job(b.self, ranks, hosts, args...)
	}
}

var quietEnv = []string{"OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
	"OMPI_MCA_btl_base_warn_component_unused=0",
	"OMPI_MCA_rmaps_base_oversubscribe=1", "LC_ALL=C"}

// time runs a peer once and returns its microseconds. A peer that cannot do a case has none of its keys; one that
// hangs or fails is named, and has none either.
func (b *builder) time(p peer, c *testCase, op string, target float64) map[measure.Key]float64 {
	if !b.has(p) {
		return nil
	}
	cmd := p.command(b, c.ranks)
	if c.beside != "" {
		target = max(target, besideTarget)
	}
	cmd = append(cmd, "-op", op, "-min", strconv.Itoa(c.min), "-max", strconv.Itoa(c.max), "-factor",
		strconv.Itoa(c.factor),
		"-repeats", "1", "-target_ms", strconv.FormatFloat(target, 'g', -1, 64), "-inplace", c.inPlace())
	if c.written {
		cmd = append(cmd, "-written", "1")
	}
	end, err := b.disturb(p, c)
	if err != nil {
		fmt.Fprintf(os.Stderr, "peers: %s, %s: what runs beside it: %v\n", c.name, p.name, err)
		return nil
	}
	defer end()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	x := exec.CommandContext(ctx, cmd[0], cmd[1:]...)
	x.Env = append(append(os.Environ(), quietEnv...), p.env...)
	x.Cancel = func() error { return x.Process.Signal(syscall.SIGTERM) } // launchers end their ranks then
	x.WaitDelay = 5 * time.Second
	var stdout, stderr bytes.Buffer
	x.Stdout, x.Stderr = &stdout, &stderr
	if err := x.Run(); err != nil {
		fmt.Fprintf(os.Stderr, "peers: %s, %s: %v: %s\n", c.name, p.name, err, firstLine(stderr.Bytes()))
	}
	return measure.Times(stdout.String())
}
