package main_test

import (
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/environ"
)

// What is refused before there is a job, a flag, a file or a variable, is status 2; what fails afterwards is 1.
func TestStatus(t *testing.T) {
	dir := t.TempDir()
	junk, run := filepath.Join(dir, "junk"), filepath.Join(dir, "run.json")
	require.NoError(t, os.WriteFile(junk, []byte("junk of lines\n"), 0o666))
	well(t, nil, "-np", "2", "-e", "64", "-op", "allreduce", "-J", run)
	under := filepath.Join(junk, "x") // in a file that is no directory

	byHand := []string{"GOCCL_RANK=0", "GOCCL_SIZE=2", "GOCCL_BOOT_TIMEOUT=1s"}
	for _, tc := range []struct {
		args string
		env  []string
		want int
		says string
	}{
		{"-np 2 -e 8", []string{"GOCCL_ALGO=x"}, 2, "GOCCL_ALGO"},
		{"-np 2 -e 8", []string{"GOCCL_SECRET=short"}, 2, "GOCCL_SECRET"},
		{"-np 2 -e 8", []string{"GOCCL_SECRET_FILE=" + under}, 2, "GOCCL_SECRET_FILE"},
		{"-np 2 -e 8 -hosts 2", []string{"GOCCL_SOCKET_IFNAME=none"}, 2, "GOCCL_SOCKET_IFNAME=none"},
		{"-np 2 -e 8 -hosts 2 -t 2", []string{"GOCCL_SOCKET_IFNAME=^"}, 2, "GOCCL_SOCKET_IFNAME=^"},
		{"-np 2 -e 8 -hosts 2", []string{"GOCCL_BENCH_SUM=00"}, 2, "SHA-256"},
		{"-e 8", append(byHand, "GOCCL_ROOT=nowhere"), 2, "host:port"},
		{"-e 8", append(byHand, "GOCCL_STORE="+under), 2, "the shared directory"},
		{"-e 8", append(byHand, "GOCCL_STORE="+junk), 2, "is not a directory"},
		{"-e 8", append(byHand, "GOCCL_ROOT=127.0.0.1:0"), 2, "host:port"},
		{"-e 8", append(byHand, "GOCCL_NEWCOMER=x"), 2, "GOCCL_NEWCOMER"},
		{"-e 8", append(byHand, "GOCCL_ROOT=127.0.0.1:1", "GOCCL_REQUIRE_SECRET=1"), 2, "GOCCL_REQUIRE_SECRET"},
		{"doctor", []string{"GOCCL_SECRET=short"}, 2, "GOCCL_SECRET"},
		{"doctor", []string{"GOCCL_PORTS=x"}, 2, "GOCCL_PORTS"},
		{"launch -np 2 -- " + program + " -e 8", []string{"GOCCL_SPARES=x"}, 2, "GOCCL_SPARES"},
		{"launch -np 2 -- " + program + " -e 8", []string{"GOCCL_ALGO=x"}, 2, "GOCCL_ALGO"},
		{"launch -np 2 -hosts 2 -- " + program + " -e 8", []string{"GOCCL_SOCKET_IFNAME=none"}, 2, "GOCCL_SOCKET_IFNAME"},
		{"ab -env A=1 -- -np 2 -e 8", []string{"GOCCL_WIRE=x"}, 2, "GOCCL_WIRE"},
		{"ab - - -- -np 1 -r 3 -op reduce", nil, 2, "-r 3: there is 1 rank"},

		{"-J " + under, nil, 2, "-J "},
		{"-csv " + under, nil, 2, "-csv "},
		{"-html " + dir, nil, 2, "-html "},
		{"-op alltoallv -matrix " + junk, nil, 2, "-matrix "},
		{"-hostfile " + under, nil, 2, "-hostfile "},
		{"doctor -hostfile " + dir, nil, 2, "-hostfile "},
		{"launch -hostfile " + under + " -- " + hello, nil, 2, "-hostfile "},
		{"launch -logs " + under + " -- " + hello, nil, 2, "the directory for the ranks' logs"},
		{"launch -- " + under, nil, 2, "no such program"},
		{"compare " + junk + " " + run, nil, 2, "it is not a file that -J writes"},
		{"compare -html " + under + " " + run + " " + run, nil, 2, "-html "},
		{"plan -nodes 1 -inside " + junk, nil, 2, "a link is its latency"},
		{"trace " + junk, nil, 2, "no trace files"},
		{"trace " + dir, nil, 2, "no trace files"},

		{"-e 8", append(byHand, "GOCCL_ROOT=127.0.0.1:1", "GOCCL_RANK=1"), 1, "rank 0 was not found"},
		{"-np 2 -b 256M -e 256M -T 1us", nil, 1, "longer than -T 1"},
		{"-np 2 -d f8e4m3 -o mulsum -e 64", nil, 1, "nothing was measured"},
		{"launch -np 2 -- " + program + " -T 1us -b 256M -e 256M", nil, 1, "exited with code 1"},
	} {
		t.Run(tc.args+" "+strings.Join(tc.env, " "), func(t *testing.T) {
			t.Parallel()
			_, errs, status := bench(t, tc.env, strings.Fields(tc.args)...)
			require.Equal(t, tc.want, status, errs)
			require.Contains(t, errs, tc.says)
		})
	}
}

// tried is a file that was to be made, of a name of its own.
var tried = regexp.MustCompile(`(mkdir|open) \S+: `)

// A dry run refuses what the run refuses, in the same words.
func TestDryRunRefuses(t *testing.T) {
	junk, hosts := filepath.Join(t.TempDir(), "junk"), filepath.Join(t.TempDir(), "hosts")
	require.NoError(t, os.WriteFile(junk, nil, 0o666))
	require.NoError(t, os.WriteFile(hosts, []byte("no-such-host.invalid\n"), 0o666))
	mpiexec := filepath.Join(t.TempDir(), "mpiexec")
	require.NoError(t, os.WriteFile(mpiexec, []byte("#!/bin/sh\necho HYDRA\n"), 0o777))
	for _, tc := range []struct{ command, args, env string }{
		{"", "-np 2 -e 8", "GOCCL_SECRET=short"},
		{"", "-np 2 -e 8", "GOCCL_ALGO=x"},
		{"", "-np 2 -e 8", "GOCCL_WIRE=x"},
		{"", "-np 2 -e 8 -nodes 2", ""},
		{"", "-np 2 -e 8 -J " + junk + "/x", ""},
		{"", "-e 99999G", ""},
		{"", "-hostfile " + junk, ""},
		{"", "-hostfile " + hosts + " -launcher " + mpiexec + " -share " + junk, ""},
		{"launch", "-hostfile " + hosts + " -launcher " + junk + " -- " + hello, ""},
		{"launch", "-hostfile " + hosts + " -launcher " + mpiexec + " -share " + junk + " -- " + hello, ""},
		{"launch", "-np 2 -- " + hello, "GOCCL_SECRET=short"},
		{"launch", "-logs " + junk + "/x -- " + hello, ""},
		{"doctor", "-hostfile " + junk, ""},
	} {
		t.Run(tc.command+" "+tc.args+" "+tc.env, func(t *testing.T) {
			if runtime.GOOS == "windows" && strings.Contains(tc.args, mpiexec) {
				t.Skip("it is a script of sh")
			}
			t.Parallel()
			var said [2]string
			for i, dry := range []string{"", "-dry-run"} {
				out, errs, status := bench(t, []string{tc.env}, strings.Fields(tc.command+" "+dry+" "+tc.args)...)
				require.Equal(t, 2, status, errs)
				require.Empty(t, out)
				said[i] = tried.ReplaceAllString(errs, "")
			}
			require.Equal(t, said[0], said[1])
		})
	}
}

// A host file of this machine alone needs neither an mpiexec nor a directory that others see.
func TestHostFileOfThisMachine(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hosts")
	for _, text := range []string{"localhost slots=2\n", "localhost\n127.0.0.1\n", "localhost\nlocalhost\n"} {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o666))
		env := []string{"PATH=" + t.TempDir(), "HOME=" + t.TempDir()}
		require.Contains(t, well(t, env, "-hostfile", file, "-e", "8"), "# ranks: 2  processes: 2 (started here)")
		require.Equal(t, 2, strings.Count(well(t, env, "launch", "-hostfile", file, "--", hello), " of 2"), text)
		require.Equal(t, "# 2 ranks on this machine, started by bench itself: the host file names no other\n", well(t, env, "-hostfile", file, "-dry-run"))
	}
}

// A variable whose value is checked is refused by its name, whichever it is.
func TestStatusOfVariables(t *testing.T) {
	refused := 0
	for _, v := range environ.All() {
		wrong := v.Set("no such value")
		if _, err := environ.Check([]string{wrong}); err == nil || v.Group == environ.Test {
			continue
		}
		refused++
		t.Run(v.Name, func(t *testing.T) {
			t.Parallel()
			for _, args := range []string{"-np 2 -e 8", "launch -- " + hello} {
				_, errs, status := bench(t, []string{wrong}, strings.Fields(args)...)
				require.Equal(t, 2, status, errs)
				require.Contains(t, errs, v.Name)
				require.Equal(t, 1, strings.Count(errs, "\n"), errs)
			}
		})
	}
	require.Greater(t, refused, 20)
}
