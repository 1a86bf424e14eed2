package boot

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// roles are what this test binary does as a rank, by BOOT_TEST_ROLE; they return
// the exit code.
var roles = map[string]func(rank string) int{
	"join": func(string) int {
		b, err := Env(context.Background())
		if err != nil {
			fmt.Println(err)
			return 1
		}
		defer b.Close()
		values, err := b.AllGather(context.Background(), fmt.Appendf(nil, "%s/%s/%s", b.HostID(), os.Getenv("GOCCL_LOCAL_RANK"), os.Getenv("GOCCL_LOCAL_SIZE")))
		if err != nil {
			fmt.Println(err)
			return 1
		}
		fmt.Printf("%d of %d at %v, secret of %d: %s\n", b.Rank(), b.Size(), b.Addr(), len(b.Secret()), bytes.Join(values, []byte(" ")))
		return 0
	},
	"rank1fails": func(rank string) int {
		if rank == "1" {
			return 7
		}
		return rest()
	},
	"allfail": func(rank string) int {
		return 3
	},
	"rank1ends": func(rank string) int {
		if rank == "1" {
			return 7
		}
		return 0
	},
	"count": func(string) int {
		n, err := io.Copy(io.Discard, os.Stdin)
		fmt.Println(n)
		if err != nil {
			return 1
		}
		return 0
	},
	"deaf": func(string) int {
		fmt.Println(0)
		return 0
	},
	"echo": func(rank string) int {
		in := make([]byte, 100)
		n, _ := os.Stdin.Read(in)
		fmt.Printf("%q", in[:n])
		fmt.Fprintln(os.Stderr, "err of", rank)
		return 0
	},
	"secret": func(string) int {
		fmt.Println(len(os.Getenv("GOCCL_SECRET")), strings.Contains(strings.Join(os.Args, " "), os.Getenv("GOCCL_SECRET")),
			os.Getenv("GOCCL_LAUNCHER"), os.Getenv("GOCCL_STORE"), os.Getenv("KEPT"))
		return 0
	},
	"wait": func(string) int {
		fmt.Println("here")
		return rest()
	},
}

// rest waits until somebody ends this process.
func rest() int {
	time.Sleep(time.Hour)
	return 99
}

func play(role string) int {
	return roles[role](os.Getenv("GOCCL_RANK"))
}

// troupe is a Command that plays role in n ranks.
func troupe(t testing.TB, n int, role string, env ...string) (Command, *bytes.Buffer) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	var out bytes.Buffer
	return Command{N: n, Path: self, Env: append(os.Environ(), append(env, "BOOT_TEST_ROLE="+role)...), Stdout: &out, Stderr: &out}, &out
}

func sortedLines(b *bytes.Buffer) []string {
	return slices.Sorted(strings.Lines(b.String()))
}

func TestSpawn(t *testing.T) {
	noLeaks(t)
	c, out := troupe(t, 3, "join")
	c.Prefix = true
	require.NoError(t, Spawn(within(t, long), c), out)
	require.Equal(t, []string{
		"[0] 0 of 3 at 127.0.0.1, secret of 32: /0/3 /1/3 /2/3\n",
		"[1] 1 of 3 at 127.0.0.1, secret of 32: /0/3 /1/3 /2/3\n",
		"[2] 2 of 3 at 127.0.0.1, secret of 32: /0/3 /1/3 /2/3\n",
	}, sortedLines(out))
}

func TestSpawnHosts(t *testing.T) {
	c, out := troupe(t, 5, "join")
	c.Hosts = 2
	require.NoError(t, Spawn(within(t, long), c), out)
	require.Equal(t, "0 of 5 at 127.0.0.1, secret of 32: host-0/0/3 host-0/1/3 host-0/2/3 host-1/0/2 host-1/1/2\n", sortedLines(out)[0])
}

func TestSpawnPlace(t *testing.T) {
	for n := 1; n <= 9; n++ {
		for hosts := 1; hosts <= n; hosts++ {
			s := &Command{N: n, Hosts: hosts}
			ranks := map[string]int{}
			for r := range n {
				p := place(s, r)
				require.Equal(t, fmt.Sprintf("GOCCL_LOCAL_RANK=%d", ranks[p[0]]), p[1])
				ranks[p[0]]++
			}
			require.Len(t, ranks, hosts)
			for r := range n {
				p := place(s, r)
				require.Equal(t, fmt.Sprintf("GOCCL_LOCAL_SIZE=%d", ranks[p[0]]), p[2])
			}
		}
	}
}

func TestSpawnFails(t *testing.T) {
	noLeaks(t)
	c, _ := troupe(t, 4, "rank1fails")
	err := Spawn(within(t, long), c)
	require.Equal(t, &ExitError{Rank: 1, Code: 7, Failed: 1, Stopped: 3}, err)
	require.EqualError(t, err, "rank 1 exited with code 7")
}

func TestSpawnKeepGoing(t *testing.T) {
	c, _ := troupe(t, 3, "allfail")
	c.KeepGoing = true
	var e *ExitError
	require.ErrorAs(t, Spawn(within(t, long), c), &e)
	require.Equal(t, 3, e.Code)
	require.Zero(t, e.Well)
	require.Zero(t, e.Stopped)

	c, _ = troupe(t, 4, "rank1ends")
	c.KeepGoing = true
	require.Equal(t, &ExitError{Rank: 1, Code: 7, Well: 3, Failed: 1}, Spawn(within(t, long), c), "the others have survived")
}

// Rank 0 gets a file itself: all of it, and what it does not read stays for others. The other ranks have no input.
func TestSpawnStdinFile(t *testing.T) {
	noLeaks(t)
	const size = 3 << 20
	path := filepath.Join(t.TempDir(), "input")
	require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("0123456789abcdef"), size/16), 0o600))
	for role, left := range map[string]int{"count": 0, "deaf": size} {
		f, err := os.Open(path)
		require.NoError(t, err)
		c, out := troupe(t, 3, role)
		c.Prefix, c.Stdin = true, f
		require.NoError(t, Spawn(within(t, long), c))
		require.Equal(t, []string{fmt.Sprintf("[0] %d\n", size-left), "[1] 0\n", "[2] 0\n"}, sortedLines(out))
		rest, err := io.ReadAll(f)
		require.NoError(t, err)
		require.Len(t, rest, left)
		require.NoError(t, f.Close())
	}
}

func TestSpawnStdin(t *testing.T) {
	noLeaks(t)
	c, out := troupe(t, 2, "echo")
	c.Prefix = true
	c.Stdin = strings.NewReader("input")
	var errs bytes.Buffer
	c.Stderr = &errs
	require.NoError(t, Spawn(within(t, long), c))
	require.Equal(t, []string{"[0] \"input\"\n", "[1] \"\"\n"}, sortedLines(out))
	require.Equal(t, []string{"[0] err of 0\n", "[1] err of 1\n"}, sortedLines(&errs))
}

func TestSpawnEnvironment(t *testing.T) {
	c, out := troupe(t, 1, "secret", "GOCCL_LAUNCHER=slurm", "GOCCL_STORE=/x", "GOCCL_SECRET=", "KEPT=kept")
	require.NoError(t, Spawn(within(t, long), c))
	require.Equal(t, "64 false   kept\n", out.String())
}

// A secret that the environment has is the job's; one that cannot be is an error, before any rank is started.
func TestSpawnKeepsTheSecret(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte(sesame), 0o600))
	for _, set := range []string{"GOCCL_SECRET=" + sesame, "GOCCL_SECRET_FILE=" + file} {
		c, out := troupe(t, 2, "join", set)
		require.NoError(t, Spawn(within(t, long), c))
		require.Equal(t, fmt.Sprintf("0 of 2 at 127.0.0.1, secret of %d: /0/2 /1/2\n", len(sesame)), sortedLines(out)[0])
	}
	for set, text := range map[string]string{
		"GOCCL_SECRET=a":                 "the job's secret is refused: GOCCL_SECRET: it holds 1 bytes",
		"GOCCL_SECRET=REPLACE-ME":        "still holds the placeholder",
		"GOCCL_SECRET_FILE=/nonexistent": "the job's secret is refused: GOCCL_SECRET_FILE: open /nonexistent: no such file",
	} {
		c, out := troupe(t, 2, "join", set)
		err := Spawn(within(t, long), c)
		require.ErrorContains(t, err, text)
		require.ErrorIs(t, err, Argument)
		require.Zero(t, out.Len())
	}
}

func TestSpawnCanceled(t *testing.T) {
	noLeaks(t)
	c, _ := troupe(t, 3, "wait")
	ctx, cancel := context.WithCancel(t.Context())
	c.Stdout = onWrite(cancel)
	err := Spawn(ctx, c)
	require.ErrorIs(t, err, Canceled)
	require.ErrorIs(t, err, context.Canceled)
	ctx, cancel = context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	c.Stdout = nil
	require.ErrorIs(t, Spawn(ctx, c), Timeout)
}

// onWrite calls itself when something is written to it.
type onWrite func()

func (f onWrite) Write(p []byte) (int, error) {
	f()
	return len(p), nil
}

// Output that cannot be passed on is an error, though the rank has ended well.
func TestSpawnOutputIsLost(t *testing.T) {
	noLeaks(t)
	for _, stderr := range []bool{false, true} {
		c, _ := troupe(t, 1, "echo") // which writes to both
		if stderr {
			c.Stderr = full{}
		} else {
			c.Stdout = full{}
		}
		err := Spawn(within(t, long), c)
		require.ErrorContains(t, err, "what the ranks wrote could not all be passed on: full")
	}
}

func TestSpawnArguments(t *testing.T) {
	for _, tc := range []struct {
		c    Command
		text string
	}{
		{Command{N: 0, Path: "x"}, "boot: 0 ranks; a host can run from 1 to 16384"},
		{Command{N: 1000000, Path: "x"}, "boot: 1000000 ranks; a host can run from 1 to 16384"},
		{Command{N: 2, Hosts: 3, Path: "x"}, "boot: 3 hosts for 2 ranks; each host needs one rank at least"},
		{Command{N: 2, Path: "/nonexistent/program"}, `boot: /nonexistent/program cannot be run: exec: "/nonexistent/program": stat /nonexistent/program: no such file or directory`},
	} {
		err := Spawn(t.Context(), tc.c)
		require.EqualError(t, err, tc.text)
		require.ErrorIs(t, err, Argument)
	}
}
