package boot

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// warnings catches what is logged while a test runs.
func warnings(t *testing.T) *bytes.Buffer {
	var b bytes.Buffer
	was := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&b, nil)))
	t.Cleanup(func() { slog.SetDefault(was) })
	return &b
}

// TestEnv joins by the environments of all launchers, with all hosts being this one.
func TestEnv(t *testing.T) {
	if !meetLocally {
		t.Skip("what the launchers share on one host differs here")
	}
	const n = 4
	unique := fmt.Sprint(os.Getpid(), ".", time.Now().UnixNano())
	dir := t.TempDir()
	ranks := func(vars ...string) func(int) map[string]string { // $r is the rank
		return func(r int) map[string]string {
			env := map[string]string{}
			for _, v := range vars {
				env = with(env, strings.ReplaceAll(v, "$r", strconv.Itoa(r)))
			}
			return env
		}
	}
	slurm := func(nodes, list string) func(int) map[string]string {
		return ranks("SLURM_PROCID=$r", "SLURM_STEP_NUM_TASKS=4", "SLURM_STEP_ID=0", "SLURM_JOB_ID="+unique+nodes,
			"SLURM_STEP_NUM_NODES="+nodes, "SLURM_STEP_NODELIST="+list)
	}
	torchrun := func(nodes string) func(int) map[string]string {
		return ranks("RANK=$r", "WORLD_SIZE=4", "TORCHELASTIC_RUN_ID="+unique, "GROUP_WORLD_SIZE="+nodes,
			"MASTER_ADDR=localhost", "MASTER_PORT=29500")
	}
	pals := func(v ...string) func(int) map[string]string {
		return ranks(append(v, "PALS_RANKID=$r", "PALS_APID="+unique, "PALS_APINFO=/apinfo")...)
	}
	for _, tc := range []struct {
		name   string
		env    func(rank int) map[string]string
		files  map[string][]byte
		secret bool
	}{
		{"GOCCL_ROOT", ranks("GOCCL_RANK=$r", "GOCCL_SIZE=4", "GOCCL_SECRET="+sesame, "GOCCL_ROOT="+freeRoot(t)), nil, true},
		{"GOCCL_ROOT without a secret", ranks("GOCCL_RANK=$r", "GOCCL_SIZE=4", "GOCCL_ROOT="+freeRoot(t)), nil, false},
		{"GOCCL_STORE", ranks("GOCCL_RANK=$r", "GOCCL_SIZE=4", "GOCCL_STORE="+dir), nil, true},
		{"GOCCL_STORE and a secret", ranks("GOCCL_RANK=$r", "GOCCL_SIZE=4", "GOCCL_SECRET="+sesame, "GOCCL_STORE="+dir), nil, true},
		{"RANK and MASTER_ADDR", ranks("RANK=$r", "WORLD_SIZE=4", "MASTER_ADDR=127.0.0.1", "MASTER_PORT="+port(t)), nil, false},
		{"slurm on one host", slurm("1", "n1"), nil, true},
		{"slurm", slurm("2", "localhost,n[2-4]"), nil, false},
		{"torchrun on one host", torchrun("1"), nil, true},
		{"torchrun", torchrun("2"), nil, false},
		{"openmpi on one host", ranks("OMPI_COMM_WORLD_RANK=$r", "OMPI_COMM_WORLD_SIZE=4", "OMPI_COMM_WORLD_LOCAL_SIZE=4", "PMIX_NAMESPACE="+unique), nil, true},
		{"pals", pals(), map[string][]byte{"/apinfo": makeAPInfo([]string{"localhost", "n2"}, []int{0, 0, 1, 1})}, false},
		{"pals with Cray's PMI", pals("PMI_RANK=$r", "PMI_SIZE=4", "PMI_CONTROL_PORT=1", "PMI_SHARED_SECRET=123"),
			map[string][]byte{"/apinfo": makeAPInfo([]string{"localhost", "n2"}, []int{0, 0, 1, 1})}, true},
		{"pals on one host", pals(), map[string][]byte{"/apinfo": makeAPInfo([]string{"x1"}, []int{0, 0, 0, 0})}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			noLeaks(t)
			warned := warnings(t)
			boots := joined(t, n, func(r int) (*Boot, error) { return env(within(t, long), varsOf(tc.env(r), tc.files)) })
			swap(t, boots)
			for _, b := range boots {
				require.Equal(t, tc.secret, b.Secret() != nil)
				require.Equal(t, boots[0].Secret(), b.Secret())
			}
			require.Empty(t, warned.String(), "NewComm warns, which knows who can reach the job")
			if !tc.secret {
				_, err := env(within(t, long), varsOf(with(tc.env(1), "GOCCL_REQUIRE_SECRET=1"), tc.files))
				wantError(t, err, Unauthorized, 1, -1)
				require.ErrorContains(t, err, "GOCCL_SECRET_FILE")
			}
		})
	}
}

func port(t *testing.T) string {
	_, p, err := net.SplitHostPort(freeRoot(t))
	require.NoError(t, err)
	return p
}

func TestEnvAlone(t *testing.T) {
	b, err := env(t.Context(), varsOf(nil, nil))
	require.NoError(t, err)
	defer b.Close()
	swap(t, []*Boot{b})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = b.AllGather(ctx, nil)
	wantError(t, err, Canceled, 0, -1)
}

func TestEnvRejects(t *testing.T) {
	const way = "; set one of these on all ranks: GOCCL_ROOT=host:port, rank 0's host and a free port there, or GOCCL_STORE=/dir, a directory that all hosts share"
	goccl := map[string]string{"GOCCL_RANK": "1", "GOCCL_SIZE": "2"}
	for _, tc := range []struct {
		name string
		env  map[string]string
		code Code
		text string
	}{
		{"nothing to go by", goccl, Argument,
			"boot: rank 1 of 2: GOCCL_RANK and GOCCL_SIZE say which rank this is, but not where rank 0 is" + way},
		{"plain", map[string]string{"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "h"}, Argument,
			"boot: rank 1 of 2: RANK and WORLD_SIZE say which rank this is, but not where rank 0 is (MASTER_ADDR and MASTER_PORT would)" + way},
		{"openmpi on two hosts", recorded(t, "openmpi.1"), Argument,
			"boot: rank 1 of 4: Open MPI's variables do not say where rank 0 is" + way},
		{"PMI_PORT", map[string]string{"PMI_RANK": "1", "PMI_SIZE": "2", "PMI_PORT": "h:1"}, Argument,
			"boot: rank 1 of 2: this process manager set no PMI_FD, through which ranks find rank 0" + way},
		{"PMI_FD that is closed", map[string]string{"PMI_RANK": "1", "PMI_SIZE": "2", "PMI_FD": "1000000"}, System,
			"boot: rank 1 of 2: PMI_FD=1000000 is not the process manager's socket (did a wrapper close it?): fcntl: bad file descriptor; set GOCCL_ROOT=host:port for all ranks"},
		{"PMI_FD that is none", map[string]string{"PMI_RANK": "1", "PMI_SIZE": "2", "PMI_FD": "x"}, Argument,
			"boot: rank 1 of 2: PMI_FD=x is not a file descriptor"},
		{"a host list that is none", with(recorded(t, "srun.1"), "SLURM_STEP_NODELIST=n[1"), Argument,
			`boot: rank 1 of 4: SLURM_STEP_NODELIST: host list n[1: its brackets do not match`},
		{"a timeout that is none", with(goccl, "GOCCL_BOOT_TIMEOUT=soon"), Argument,
			"boot: GOCCL_BOOT_TIMEOUT=soon: it takes a duration such as 30s or 5m, or a number of seconds"},
		{"a root that is none", with(goccl, "GOCCL_ROOT=h"), Argument,
			`boot: rank 1 of 2: root "h": rank 0's address is host:port, with a port from 1 to 65535, such as c1:29500`},
		{"a secret that is none", with(goccl, "GOCCL_SECRET_FILE=/nonexistent/secret"), Argument,
			"boot: rank 1 of 2: the job's secret is refused: GOCCL_SECRET_FILE: open /nonexistent/secret: no such file or directory"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := env(within(t, long), varsOf(tc.env, nil))
			require.EqualError(t, err, tc.text)
			require.ErrorIs(t, err, tc.code)
		})
	}
}

func TestBootLimit(t *testing.T) {
	for s, want := range map[string]time.Duration{"": DefaultLimit, "30s": 30 * time.Second, "2m": 2 * time.Minute, "7": 7 * time.Second} {
		m := &joinConfig{size: 1}
		v := varsOf(map[string]string{"GOCCL_BOOT_TIMEOUT": s}, nil)
		require.NoError(t, m.prepare(t.Context(), v, Launch{Size: 1}))
		require.Equal(t, want, m.limit)
	}
	for _, s := range []string{"0", "-1s", "x", "1 s"} {
		_, err := env(t.Context(), varsOf(map[string]string{"GOCCL_BOOT_TIMEOUT": s}, nil))
		require.ErrorIs(t, err, Argument)
	}
}

// sesame is long enough for a secret.
const sesame = "open sesame, open"

// What protects a job or says which rank this is must not be ignored for a slip in its value or its name.
func TestEnvRefuses(t *testing.T) {
	two := map[string]string{"GOCCL_RANK": "1", "GOCCL_SIZE": "2", "GOCCL_ROOT": "127.0.0.1:1"}
	for _, tc := range []struct{ set, text string }{
		{"GOCCL_REQUIRE_SECRET=perhaps", "GOCCL_REQUIRE_SECRET: it takes 1 or 0"},
		{"GOCCL_REQUIRE_SECRET=true", "GOCCL_REQUIRE_SECRET=true, but the job has no secret"},
		{"GOCCL_REQUIRE_SECERT=1", "GOCCL_REQUIRE_SECERT is not a variable of goccl; did you mean GOCCL_REQUIRE_SECRET?"},
		{"GOCCL_RNAK=1", "GOCCL_RNAK is not a variable of goccl; did you mean GOCCL_RANK?"},
		{"GOCCL_SECRET=a", "the job's secret is refused: GOCCL_SECRET: it holds 1 bytes, and fewer than 16 can be guessed"},
		{"GOCCL_SECRET=REPLACE-ME", "GOCCL_SECRET: it still holds the placeholder REPLACE-ME"},
		{"GOCCL_LAUNCHER=slrum", "GOCCL_LAUNCHER=slrum: it takes one of goccl, torchrun, openmpi, pmi, pals, slurm, env, pet, kubernetes, none"},
	} {
		_, err := env(within(t, long), varsOf(with(two, tc.set), nil))
		require.ErrorContains(t, err, tc.text, tc.set)
	}
	_, err := env(within(t, long), varsOf(map[string]string{"GOCCL_RNAK": "1", "GOCCL_SZIE": "2"}, nil))
	require.ErrorContains(t, err, "did you mean GOCCL_RANK?; GOCCL_SZIE is not a variable of goccl; did you mean GOCCL_SIZE?")

	empty := with(with(two, "GOCCL_REQUIRE_SECRET=1"), "GOCCL_SECRET=")
	_, err = env(within(t, long), varsOf(empty, nil))
	require.ErrorContains(t, err, "GOCCL_REQUIRE_SECRET=1, but the job has no secret (GOCCL_SECRET is set, but empty, which is none)")
}

// A rank that was started again is no job of its own.
func TestEnvRefusesNewcomers(t *testing.T) {
	for _, more := range []map[string]string{{}, {"GOCCL_RANK": "1", "GOCCL_SIZE": "2", "GOCCL_ROOT": "127.0.0.1:1"}} {
		_, err := env(within(t, long), varsOf(with(more, "GOCCL_NEWCOMER=1.1"), nil))
		require.ErrorIs(t, err, Argument)
		require.EqualError(t, err, "boot: this process was started again while its job runs (GOCCL_NEWCOMER=1.1): only ccl.Join can wait for the job's Grow, and GOCCL_HALL or Options.Store says where")
	}
}

func TestEnvTimeout(t *testing.T) {
	noLeaks(t)
	v := varsOf(map[string]string{"GOCCL_RANK": "1", "GOCCL_SIZE": "2", "GOCCL_ROOT": freeRoot(t), "GOCCL_BOOT_TIMEOUT": "200ms"}, nil)
	_, err := env(context.Background(), v)
	wantError(t, err, Timeout, 1, 0)
}

// TestInherit is a rank 0 that listens at the socket that Spawn opened for it.
func TestInherit(t *testing.T) {
	noLeaks(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	f, err := listenerFile(l)
	require.NoError(t, err)
	if f == nil {
		t.Skip("a socket cannot be inherited here")
	}
	defer f.Close()
	fd := strconv.Itoa(int(f.Fd())) // once: it makes the socket blocking, for all who share it
	here := l.Addr().String()
	for _, root := range []string{here, here, freeRoot(t)} { // it stays open for the next; one of something else is left alone
		boots := joined(t, 3, func(r int) (*Boot, error) {
			return env(within(t, long), varsOf(map[string]string{
				"GOCCL_RANK": strconv.Itoa(r), "GOCCL_SIZE": "3", "GOCCL_SECRET": sesame,
				"GOCCL_ROOT": root, "GOCCL_ROOT_FD": fd,
			}, nil))
		})
		swap(t, boots)
		closeAll(boots)
	}
}
