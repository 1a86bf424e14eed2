// Package stages checks the script that CI's stages run by.
package stages

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestStages(t *testing.T) {
	script, err := filepath.Abs("../../.ci/stages.sh")
	require.NoError(t, err)
	for _, name := range []string{"bash", "flock", "timeout"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("hardware: no %s here", name)
		}
	}
	for _, tc := range []struct {
		name, only, list string
		fails            bool
		rows             []string // of the table, as patterns
		not              string
	}{
		{"all well", "", "stage a true\nstage b echo hello", false, []string{`(?m)^ +\d+ a +ok +\d s +\d s$`, `(?m)^ +0 total +ok `, "=== b: echo hello \\(ok, \\d s\\)\nhello\n"}, "FAILED"},
		{"one fails, the next one runs", "", "stage a false\nstage b true", true, []string{` a +FAILED `, ` b +ok `, ` total +FAILED `}, ""},
		{"a function fails", "", "f() { echo from f; return 3; }\nstage a f", true, []string{` a +FAILED `, "from f"}, ""},
		{"out of time", "", "stage a sleep 30\nstage b true", true, []string{` a +OUT OF TIME `, ` b +NOT RUN `, ` total +FAILED `}, ""},
		{"no time to spare", "", "spare 100 a false\nspare 1 b true", false, []string{` a +LEFT OUT `, ` b +ok `, ` total +ok `}, ""},
		{"a spare that takes too long", "", "spare 1 a sleep 30\nspare 1 b true", false, []string{` a +CUT OFF `, ` b +LEFT OUT `, ` total +ok `}, ""},
		{"a spare whose own time is over", "", "exit124() { return 124; }\nspare 1 a exit124", true, []string{` a +OUT OF TIME `, ` total +FAILED `}, ""},
		{"no time to spare in a lane", "", "later 10 spare 100 a false\nlater 10 stage b true\nlanes 2", false, []string{` a +LEFT OUT `, ` b +ok `, ` total +ok `}, ""},
		{"lanes beside each other", "", "nproc() { echo 2; }\nlater 10 stage a sleep 10\nlater 10 stage c sleep 10\nlater 10 stage b true\nlater 10 stage d false\nlanes 2", true,
			[]string{` a +ok +1\d s `, ` b +ok `, ` c +ok +1\d s `, ` d +FAILED `, ` total +FAILED +1\d s`}, ""},
		// b fits beside a, which waits for it; c does not: it begins when a has ended, though its lane is free.
		{"no more than the processors", "", "nproc() { echo 2; }\na() { until [ -e $logs/b ]; do sleep .1; done; sleep 1; : >$logs/a; }\n" +
			"b() { : >$logs/b; }\nc() { [ -e $logs/a ]; }\n" +
			"later 150 stage a a\nlater 90 stage c c\nlater 50 stage b b\nlanes 3", false,
			[]string{` a +ok `, ` b +ok `, ` c +ok `}, ""},
		{"a stage that takes more than there is", "", "nproc() { echo 1; }\nlater 150 stage a true\nlater 200 stage b true\nlanes 3", false, []string{` a +ok `, ` b +ok `}, ""},
		{"what failed is told in short", "", "stage a echo '--- FAIL: TestX (0.1s)'", false, []string{`(?m)^a: --- FAIL: TestX`}, ""},
		{"nothing on standard input", "", "stage a cat", false, []string{` a +ok +\d s `}, ""},
		{"a stage that ends its lane", "", "later 10 stage a true\nlater 10 stage f eval 'exit 0'\nlater 10 stage b true\nf() { exit 0; }\nlater 10 stage e f\nlanes 1", true,
			[]string{` a +ok `, ` b +ok `, ` total +FAILED `}, " e "},
		{"arguments with blanks", "", "later 10 stage a test 'x y' = 'x y'\nlanes 2", false, []string{` a +ok `}, ""},
		{"in turn", "", "turn=7\nin_turn 1/3 10 stage a true\nin_turn 2/3 10 spare 1 b false\nlanes 2", false, []string{` a +ok `, ` b +IN TURN `, ` total +ok `}, ""},
		{"some by name", "a c", "turn=7\nstage install true\nstage a true\nstage b false\nin_turn 0/3 10 spare 1 c false\nin_turn 0/3 10 spare 1 e true\nlater 10 stage d false\nlanes 2", false,
			[]string{` install +ok `, ` a +ok `, ` c +IN TURN `}, " [bde] "},
		{"a name that is no stage", "a x", "stage a true", true, []string{` a +ok `, "no stage x", ` total +FAILED `}, ""},
		{"a page", "", "MINUTES=/dev/stdout\nturn=7\nstage a true\nlater 10 spare 100 b false\nin_turn 0/3 10 stage c true\nlanes 1", false,
			[]string{`(?m)^\| a \| ok \| \d \| \d \| \d \|$`, `(?m)^\| b \| (LEFT OUT|FAILED) \| `, `(?m)^\| c \| IN TURN \| \d \| 0 \| 0 \|$`, `(?m)^\| sum \| \| \| `}, ""},
		{"nothing was run", "", "true", true, []string{` total +FAILED `}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			limit := "60"
			if strings.Contains(tc.list, "sleep 30") {
				limit = "8"
			}
			cmd := exec.Command("bash", "-c", "limit="+limit+"\nset -- "+tc.only+"\n. "+script+"\n"+tc.list+"\nfinish")
			cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
			out, err := cmd.CombinedOutput()
			require.Equal(t, tc.fails, err != nil, "%s", out)
			for _, row := range tc.rows {
				require.Regexp(t, row, string(out))
			}
			require.NotContains(t, string(out), "stages.sh: line")
			if tc.not != "" {
				require.NotRegexp(t, tc.not, string(out))
			}
			left, err := os.ReadDir(cmd.Env[len(cmd.Env)-1][len("TMPDIR="):])
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}

// Two clones of a commit have files of the same age, so that what go test has kept of one holds in the other; a file
// with another content has another, and so has its folder.
func TestSettle(t *testing.T) {
	script, err := filepath.Abs("../../.ci/stages.sh")
	require.NoError(t, err)
	for _, name := range []string{"git", "bash"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("hardware: no %s here", name)
		}
	}
	dir := t.TempDir()
	bash := func(in, text string) {
		t.Helper()
		cmd := exec.Command("bash", "-euc", text, script)
		cmd.Dir = in
		cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	settle := `mkdir .ci && cp "$0" .ci && limit=1 && . .ci/stages.sh && settle`
	age := func(path string) int64 {
		info, err := os.Stat(filepath.Join(dir, path))
		require.NoError(t, err)
		return info.ModTime().UnixNano()
	}
	bash(dir, `git init -q a && cd a && mkdir -p d/e f && echo 1 >d/e/x && echo 2 >f/y && git add . && git commit -qm 1`)
	bash(dir, `git clone -q a b && sleep 0.01 && git clone -q a c`)
	bash(filepath.Join(dir, "b"), settle)
	bash(filepath.Join(dir, "c"), settle)
	for _, path := range []string{"d", "d/e", "d/e/x", "f", "f/y"} {
		require.Equal(t, age("b/"+path), age("c/"+path), path)
	}
	bash(filepath.Join(dir, "a"), `echo 3 >d/e/x && git commit -qam 2`)
	bash(dir, `git clone -q a e`)
	bash(filepath.Join(dir, "e"), settle)
	for _, path := range []string{"d", "d/e", "d/e/x"} {
		require.NotEqual(t, age("b/"+path), age("e/"+path), path)
	}
	require.Equal(t, age("b/f/y"), age("e/f/y"))
	// Where the tree is not its commit, the files keep their ages.
	before := age("c/f/y")
	bash(filepath.Join(dir, "c"), `echo 4 >d/e/x && touch f/y && rm -r .ci && `+settle)
	require.NotEqual(t, before, age("c/f/y"))
}
