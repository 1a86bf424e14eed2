package ccl_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

// roles are what ranks do that are processes of their own, because they are killed, stopped or limited. arg is what the test gave
// to processes.
var roles = map[string]func(ctx context.Context, t *testing.T, arg string){}

// roleVariable names the role of a process, and has its argument.
const roleVariable = "CCL_TEST_ROLE"

// TestProcess is not a test of its own: it is what the processes run that processes starts.
func TestProcess(t *testing.T) {
	if role, arg, isRank := strings.Cut(os.Getenv(roleVariable), ": "); isRank {
		ctx, cancel := context.WithTimeout(context.Background(), long)
		defer cancel()
		roles[role](ctx, t, arg)
	}
}

// command runs n ranks in a role as processes on that many hosts (0: this one).
func command(n, hosts int, role, arg string, env ...string) boot.Command {
	return boot.Command{N: n, Hosts: hosts, Path: os.Args[0], Args: []string{"-test.run=^TestProcess$"}, KeepGoing: true,
		Env: append(append(os.Environ(), roleVariable+"="+role+": "+arg, "GORACE=atexit_sleep_ms=0"), env...)}
}

// processes runs a command, and returns what its ranks print. They may be killed, but neither crash nor fail a test.
func processes(t *testing.T, n, hosts int, role, arg string, env ...string) string {
	t.Helper()
	text, _ := spawned(t, n, hosts, role, arg, env...)
	return text
}

// spawned does the same, and returns Spawn's error too.
func spawned(t *testing.T, n, hosts int, role, arg string, env ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*long)
	defer cancel()
	var out bytes.Buffer
	c := command(n, hosts, role, arg, env...)
	c.Stdout, c.Stderr = &out, &out
	err := boot.Spawn(ctx, c)
	require.NoError(t, ctx.Err(), "%v\n%s", err, &out)
	require.NotRegexp(t, `SIGSEGV|SIGBUS|SIGSYS|fatal error|FAIL|panic: (?:[^b]|b[^o])`, out.String()) // a role may panic with boom
	return out.String(), err
}

// joined is the Comm of all processes, which is closed in the end.
func joined(ctx context.Context, t *testing.T, o *ccl.Options) *ccl.Comm {
	t.Helper()
	c, err := ccl.Join(ctx, o)
	require.NoError(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}
