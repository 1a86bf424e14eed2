//go:build unix

package launch

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// ran is what bench launch makes of a shell's script as ranks of this machine.
func ran(t *testing.T, script string, flags ...string) (status int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	args := append([]string{"-launcher", "local", "-bind", "none"}, flags...)
	status = Command(t.Context(), func() {}, append(args, "--", "sh", "-c", script), &stdout, &stderr)
	lines := slices.Sorted(strings.Lines(stdout.String()))
	return status, strings.Join(lines, ""), stderr.String()
}

// reads has this process read a file as its standard input.
func reads(t *testing.T, f *os.File) {
	before := os.Stdin
	os.Stdin = f
	t.Cleanup(func() { os.Stdin = before })
}

// The status is that of the rank that failed; with -keep-going that of the ranks that have survived it.
func TestLaunchStatus(t *testing.T) {
	back := filepath.Join(t.TempDir(), "back")
	// What ccl does in the last rank, a spare that has waited to the end.
	const unused = "[ $((GOCCL_RANK + 1)) = $GOCCL_SIZE ] && eval \"echo unused $GOCCL_RANK >&${GOCCL_BLAME_FD%%:*}\"; "
	const rank1Fails, othersWait = "[ $GOCCL_RANK = 1 ] && exit 7; ", "exec sleep 100"
	for _, tc := range []struct {
		name, script string
		flags        []string
		status       int
		says         string
	}{
		{"all end well", "exit 0", nil, 0, ""},
		{"one fails", rank1Fails + othersWait, nil, 7,
			"bench launch: rank 1 exited with code 7; 2 other ranks ended because of it (with -keep-going the others go on, which a program that calls Shrink needs)\n"},
		{"one is killed", "[ $GOCCL_RANK = 1 ] && kill -9 $$; " + othersWait, nil, 1,
			"bench launch: rank 1 was ended by a signal: killed; 2 other ranks ended because of it (with -keep-going the others go on, which a program that calls Shrink needs)\n"},
		{"one fails, the others go on", rank1Fails + "exit 0", []string{"-keep-going"}, 0, "bench launch: rank 1 exited with code 7; 2 other ranks ended well\n"},
		{"one is killed, the others go on", "[ $GOCCL_RANK = 1 ] && kill -9 $$; exit 0", []string{"-keep-going"}, 0, "bench launch: rank 1 was ended by a signal: killed; 2 other ranks ended well\n"},
		{"one is killed, a spare ends well in its place", "[ $GOCCL_RANK = 1 ] && kill -9 $$; exit 0", []string{"-spares", "1"}, 0, "bench launch: rank 1 was ended by a signal: killed; 3 other ranks ended well\n"},
		{"a spare that is not needed fails", "[ $GOCCL_RANK = 3 ] && exit 5; exit 0", []string{"-spares", "1"}, 0, "bench launch: rank 3 exited with code 5; 3 other ranks ended well\n"},
		{"one fails in the end, and the spare, which ends well, was not needed", "[ $GOCCL_RANK = 1 ] && exit 7; " + unused + "exit 0", []string{"-spares", "1"}, 7, "bench launch: rank 1 exited with code 7; 3 other ranks ended well, 1 of them a spare that nobody needed\n"},
		{"one of two spares was not needed", "[ $GOCCL_RANK = 1 ] && kill -9 $$; " + unused + "exit 0", []string{"-spares", "2"}, 0, "bench launch: rank 1 was ended by a signal: killed; 4 other ranks ended well, 1 of them a spare that nobody needed\n"},
		{"more fail than there are spares", "[ $GOCCL_RANK -lt 2 ] && exit 6; exit $((GOCCL_SPARES-1))", []string{"-spares", "1"}, 6, "exited with code 6; 2 ranks failed in all, and 2 ended well\n"},
		{"one is killed, and its newcomer is not taken in", "[ \"$GOCCL_RANK\" = 1 ] && kill -9 $$; [ \"$GOCCL_NEWCOMER\" ] && exec touch " + back + "; until [ -e " + back + " ]; do sleep 0.01; done", []string{"-restart", "1"}, 1,
			"rank 1 was ended by a signal: killed; it is started again at once, 1 of 1 times in a row\nbench launch: rank 1 was ended by a signal: killed; ranks were started again once; 2 ended well\n"},
		{"the others have done all that there is", "[ \"$GOCCL_RANK\" = 1 ] && exit 6; exit 0", []string{"-restart", "1"}, 6, "rank 1 exited with code 6; "},
		{"all fail", "exit 9", []string{"-keep-going"}, 9, "exited with code 9\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			status, _, errs := ran(t, tc.script, append(tc.flags, "-np", "3")...)
			require.Equal(t, tc.status, status, errs)
			if tc.says != "" && !strings.HasPrefix(tc.says, "bench launch: ") { // any of the ranks
				require.Contains(t, errs, tc.says)
			} else {
				require.Equal(t, tc.says, errs)
			}
		})
	}
}

// Rank 0 has the input, all of it; what it does not read stays for the loop around bench launch.
func TestLaunchInput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "input")
	require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("0123456789abcde\n"), 3<<20/16), 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	defer f.Close()
	reads(t, f)
	status, out, errs := ran(t, "echo no input read", "-np", "2")
	require.Zero(t, status, errs)
	require.Equal(t, "[0] no input read\n[1] no input read\n", out)
	status, out, errs = ran(t, "echo $(wc -c)", "-np", "2")
	require.Zero(t, status, errs)
	require.Equal(t, fmt.Sprintf("[0] %d\n[1] 0\n", 3<<20), out)
}

func TestLaunchSets(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	status, out, errs := ran(t, `echo "$GREETING, $WHO"`, "-np", "2", "-x", "GREETING=good=morning", "-x", "WHO=", "-logs", dir)
	require.Zero(t, status, errs)
	require.Equal(t, "[0] good=morning, \n[1] good=morning, \n", out)
	for r := range 2 {
		text, err := os.ReadFile(filepath.Join(dir, fmt.Sprintf("rank-%d.log", r)))
		require.NoError(t, err)
		require.Equal(t, "good=morning, \n", string(text))
	}
}

// What the environment or -x has wrong is refused before any rank is started; an empty secret is said to be none.
func TestLaunchEnvironment(t *testing.T) {
	for _, tc := range []struct{ set, says string }{
		{"GOCCL_CHECKSUM=maybe", "bench launch: GOCCL_CHECKSUM=maybe: it takes 1 or 0\n"},
		{"GOCCL_REQUIRE_SECERT=1", "bench launch: GOCCL_REQUIRE_SECERT is not a variable of goccl; did you mean GOCCL_REQUIRE_SECRET?\n"},
	} {
		status, out, errs := ran(t, "echo started", "-np", "1", "-x", tc.set)
		require.Equal(t, 2, status)
		require.Empty(t, out)
		require.Equal(t, tc.says, errs)
		t.Run(tc.set, func(t *testing.T) {
			name, value, _ := strings.Cut(tc.set, "=")
			t.Setenv(name, value)
			status, out, errs := ran(t, "echo started", "-np", "1")
			require.Equal(t, 2, status)
			require.Empty(t, out)
			require.Equal(t, tc.says, errs)
		})
	}
	status, out, errs := ran(t, `echo ${#GOCCL_SECRET}`, "-np", "1", "-x", "GOCCL_SECRET=")
	require.Zero(t, status)
	require.Equal(t, "[0] 64\n", out)
	require.Equal(t, "bench: GOCCL_SECRET is set, but empty, which is no secret\n", errs)
	status, _, errs = ran(t, "echo started", "-np", "1", "-x", "GOCCL_SECRET_FILE=/nonexistent")
	require.Equal(t, 2, status)
	require.Contains(t, errs, "the job's secret is refused: GOCCL_SECRET_FILE: open /nonexistent: no such file or directory")
}
