// Package stages checks the script that CI's stages run by.
package stages

import (
	"os"
	"os/exec"
	"path/filepath"
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
		name, list string
		fails      bool
		rows       []string // of the table, as patterns
		not        string
	}{
		{"all well", "stage a true\nstage b echo hello", false, []string{`(?m)^ +\d+ a +ok +\d s +\d s$`, `(?m)^ +0 total +ok `, "=== b: echo hello \\(ok, \\d s\\)\nhello\n"}, "FAILED"},
		{"one fails, the next one runs", "stage a false\nstage b true", true, []string{` a +FAILED `, ` b +ok `, ` total +FAILED `}, ""},
		{"a function fails", "f() { echo from f; return 3; }\nstage a f", true, []string{` a +FAILED `, "from f"}, ""},
		{"out of time", "stage a sleep 20\nstage b true", true, []string{` a +OUT OF TIME `, ` b +NOT RUN `, ` total +FAILED `}, ""},
		{"no time to spare", "spare 100 a false\nspare 1 b true", false, []string{` a +LEFT OUT `, ` b +ok `, ` total +ok `}, ""},
		{"no time to spare in a lane", "later spare 100 a false\nlater stage b true\nlanes 2", false, []string{` a +LEFT OUT `, ` b +ok `, ` total +ok `}, ""},
		{"lanes beside each other", "later stage a sleep 10\nlater stage c sleep 10\nlater stage b true\nlater stage d false\nlanes 2", true,
			[]string{` a +ok +1\d s `, ` b +ok `, ` c +ok +1\d s `, ` d +FAILED `, ` total +FAILED +1\d s`}, ""},
		{"what failed is told in short", "stage a echo '--- FAIL: TestX (0.1s)'", false, []string{`(?m)^a: --- FAIL: TestX`}, ""},
		{"nothing on standard input", "stage a cat", false, []string{` a +ok +\d s `}, ""},
		{"a lane that dies", "later stage a true\nlater eval 'exit 0'\nlater stage b true\nlanes 1", true, []string{` a +ok `, ` total +FAILED `}, " b "},
		{"arguments with blanks", "later stage a test 'x y' = 'x y'\nlanes 2", false, []string{` a +ok `}, ""},
		{"nothing was run", "true", true, []string{` total +FAILED `}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			limit := "2"
			if tc.name != "out of time" && tc.name != "no time to spare" {
				limit = "60"
			}
			cmd := exec.Command("bash", "-c", "limit="+limit+"\n. "+script+"\n"+tc.list+"\nfinish")
			cmd.Env = append(os.Environ(), "TMPDIR="+t.TempDir())
			out, err := cmd.CombinedOutput()
			require.Equal(t, tc.fails, err != nil, "%s", out)
			for _, row := range tc.rows {
				require.Regexp(t, row, string(out))
			}
			require.NotContains(t, string(out), "stages.sh: line")
			if tc.not != "" {
				require.NotContains(t, string(out), tc.not)
			}
			left, err := os.ReadDir(cmd.Env[len(cmd.Env)-1][len("TMPDIR="):])
			require.NoError(t, err)
			require.Empty(t, left)
		})
	}
}
