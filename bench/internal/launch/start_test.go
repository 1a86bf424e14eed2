//go:build unix

package launch

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/environ"
)

// launcher is a stand-in for mpiexec, which runs the last word of its command line.
func launcher(t *testing.T, script string) *Plan {
	t.Helper()
	dir := t.TempDir()
	body := "#!/bin/sh\n[ \"$1\" = --version ] && { echo PALS; exit; }\n" + script + "\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mpiexec"), []byte(body), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	self, err := os.Executable()
	require.NoError(t, err)
	hosts := nodefile(t, "h1", "h2")
	p, err := order(func(o *Order) {
		o.Hostfile, o.Program, o.Quiet, o.Share = hosts, []string{self}, true, t.TempDir()
	}).Plan(t.Context(), env())
	require.NoError(t, err)
	return p
}

func TestRun(t *testing.T) {
	for _, tc := range []struct {
		name, script, out string
		errs              []string // in the messages
		code              int
		said              bool
	}{
		{"good", "echo table", "table\n", nil, 0, false},
		{"a rank fails, and says why", "echo 'bench: wrong data' >&2; exit 1", "", []string{"bench: wrong data\n"}, 1, true},
		{"it says nothing", "exit 143", "", nil, 143, false},
		{"a known failure", "echo 'No VNIs available in internal allocator' >&2; exit 1", "", []string{"bench: hint: the node's network contexts"}, 1, false},
		{"a node lacks the program, and the launcher waits", "echo 'execvp error on file x (No such file or directory)' >&2; exec sleep 60", "",
			[]string{"bench: hint: a node does not see the program"}, -1, true},
		{"the secret is there, not in the arguments", `case "$*" in *$GOCCL_SECRET*) exit 9;; esac; [ ${#GOCCL_SECRET} -ge 32 ]`, "", nil, 0, false},
		{"this process's rank is not theirs", `[ -z "$GOCCL_RANK$LOCAL_RANK" ]`, "", nil, 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("GOCCL_RANK", "7")
			t.Setenv("LOCAL_RANK", "7")
			p := launcher(t, tc.script)
			var out, errs bytes.Buffer
			err := p.Run(t.Context(), &out, &errs)
			require.Equal(t, tc.out, out.String())
			for _, e := range tc.errs {
				require.Contains(t, errs.String(), e)
			}
			if tc.code == 0 {
				require.NoError(t, err)
			} else {
				var exit *Exit
				require.ErrorAs(t, err, &exit)
				require.Equal(t, tc.code, exit.Code)
				require.Equal(t, tc.said, exit.Said)
			}
			left, err := os.ReadDir(p.Share)
			require.NoError(t, err)
			require.Empty(t, left, "the copy of the program is gone")
		})
	}
}

// Another program is checked on its node by a copy of bench.
func TestRunAnother(t *testing.T) {
	p := launcher(t, `for last; do :; done; shift 7; echo "$@"`)
	program := filepath.Join(t.TempDir(), "train")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"), 0o755))
	p.Program, p.program, p.Self = []string{program, "-epochs", "3"}, nil, false
	var out, errs bytes.Buffer
	require.NoError(t, p.Run(t.Context(), &out, &errs))
	want, err := sum(program)
	require.NoError(t, err)
	words := strings.Fields(out.String())
	require.Contains(t, out.String(), " _exec "+want+" "+p.Share)
	require.Equal(t, []string{"-epochs", "3"}, words[len(words)-2:])
}

// A launcher that ended well did so, though what it has left still has its output, as the master of an ssh connection has.
func TestRunLeavesSomebody(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: it waits for 10 s")
	}
	p := launcher(t, "echo table; sleep 15 & exit 0")
	var out, errs bytes.Buffer
	require.NoError(t, p.Run(t.Context(), &out, &errs))
	require.Equal(t, "table\n", out.String())
}

// When this process is told to end, so is the launcher, and Run waits for it.
func TestRunInterrupted(t *testing.T) {
	p := launcher(t, `trap 'echo ended; exit 1' TERM; echo ready; for i in $(seq 3000); do sleep 0.01; done`)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out := &signalling{when: "ready", do: cancel}
	err := p.Run(ctx, out, out)
	require.Error(t, err)
	require.Equal(t, "ready\nended\n", out.text.String())
}

// signalling calls a function when it is written a word.
type signalling struct {
	text bytes.Buffer
	when string
	do   func()
}

func (s *signalling) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte(s.when)) {
		s.do()
	}
	return s.text.Write(b)
}

func TestNoLauncherThere(t *testing.T) {
	p := launcher(t, "")
	require.NoError(t, os.Remove(p.starter.path))
	err := p.Run(t.Context(), &bytes.Buffer{}, &bytes.Buffer{})
	require.ErrorContains(t, err, "starting "+p.starter.path)
	var exit *Exit
	require.False(t, errors.As(err, &exit))
}

// The variables of a step do not reach the next one.
func TestEnvironment(t *testing.T) {
	p := &Plan{starter: &starter{kind: "srun"}}
	got := p.environment([]string{"SLURM_JOB_ID=7", "SLURM_STEP_ID=0", "SLURM_NTASKS=1", "SLURM_PTY_PORT=9", "PMI_RANK=0", "HOME=/root", "GOCCL_SECRET=mine"}, "0123")
	require.Equal(t, []string{"SLURM_JOB_ID=7", "HOME=/root", "GOCCL_SECRET=mine", environ.BenchSum.Set("0123")}, got)

	p = &Plan{starter: &starter{kind: "hydra"}, root: "h1:33000"}
	got = p.environment([]string{"SLURM_STEP_ID=0", "GOCCL_SECRET_FILE=/f", "GOCCL_RANK=3"}, "")
	require.Equal(t, []string{"SLURM_STEP_ID=0", "GOCCL_SECRET_FILE=/f", "GOCCL_ROOT=h1:33000"}, got)
}

// The ranks get a secret, unless the environment has one that will do. One that is refused stays, so that they say why.
func TestWithSecret(t *testing.T) {
	long := strings.Repeat("s", 16)
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte(long), 0o600))
	for _, tc := range []struct {
		name string
		env  []string
		made bool
		kept []string
	}{
		{"none", []string{"HOME=/root"}, true, []string{"HOME=/root"}},
		{"an empty one", []string{"GOCCL_SECRET=", "HOME=/root"}, true, []string{"HOME=/root"}},
		{"a blank one", []string{"GOCCL_SECRET= \n"}, true, nil},
		{"an empty file's name", []string{"GOCCL_SECRET_FILE="}, true, nil},
		{"a variable of a similar name", []string{"GOCCL_SECRETS=1", "GOCCL_SECRETS_DIR=/x"}, true, []string{"GOCCL_SECRETS=1", "GOCCL_SECRETS_DIR=/x"}},
		{"the last counts", []string{"GOCCL_SECRET=" + long, "GOCCL_SECRET="}, true, nil},
		{"a good one", []string{"GOCCL_SECRET=" + long}, false, []string{"GOCCL_SECRET=" + long}},
		{"a good file", []string{"GOCCL_SECRET_FILE=" + file}, false, []string{"GOCCL_SECRET_FILE=" + file}},
		{"a short one", []string{"GOCCL_SECRET=a"}, false, []string{"GOCCL_SECRET=a"}},
		{"a file that only the nodes have", []string{"GOCCL_SECRET_FILE=/nonexistent"}, false, []string{"GOCCL_SECRET_FILE=/nonexistent"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := withSecret(slices.Clone(tc.env))
			if !tc.made {
				require.Equal(t, tc.kept, got)
				return
			}
			require.Len(t, got, len(tc.kept)+1)
			require.Equal(t, tc.kept, append([]string(nil), got[:len(got)-1]...))
			require.Regexp(t, "^GOCCL_SECRET=[0-9a-f]{64}$", got[len(got)-1])
		})
	}
}
