package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var (
	// claims says that something is not there, as a fact: not "if there is none", or "where there is no launcher".
	claims = regexp.MustCompile(`(?i)(\b(?:if|where|when|while|unless|so that|since|file)\b[^.;:|]{0,30})?(there (?:is|are) no [a-z-]+|(?:is|are) not there|not there yet|not there \||never added|starts no )`)
	// absent names, in a comment of the page, the exported names or the files whose absence makes the claim true.
	absent = regexp.MustCompile(`<!-- absent: ([^>]*) -->`)
	// tested is a test by whose name a claim is held.
	tested = regexp.MustCompile("`(Test[A-Z]\\w*)`")
	// piece is where a paragraph, an item of a list or a row of a table ends.
	piece = regexp.MustCompile(`\n\n|\n(?:- |\|)`)
)

// unheld lists the claims of a text that nothing holds, and the proofs that are none: a name that is there, a test that is not.
func unheld(text string, names, tests map[string]bool) (bad []string) {
	for _, p := range piece.Split(title.ReplaceAllString(fence.ReplaceAllString(text, ""), ""), -1) {
		line := strings.Join(strings.Fields(p), " ")
		proofs := 0
		for _, m := range absent.FindAllStringSubmatch(line, -1) {
			for _, name := range strings.Split(m[1], ", ") {
				_, err := os.Stat(filepath.Join(root, name))
				if proofs++; names[name] || strings.Contains(name, "/") && err == nil {
					bad = append(bad, name+" is there: "+line)
				}
			}
		}
		for _, m := range tested.FindAllStringSubmatch(line, -1) {
			if proofs++; !tests[m[1]] {
				bad = append(bad, m[1]+" is no test: "+line)
			}
		}
		for _, m := range claims.FindAllStringSubmatch(line+" |", -1) {
			if m[1] == "" && proofs == 0 {
				bad = append(bad, m[2]+": "+line)
			}
		}
	}
	return bad
}

// A page that says that something is not there names what would make that false: the name that would have to appear, in a
// comment, or the test that would fail. Who adds the feature finds the page by that.
func TestAbsences(t *testing.T) {
	names := names(t)
	tests := map[string]bool{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllStringSubmatch(string(text), -1) {
			tests[m[1]] = true
		}
		return err
	}))
	for text, want := range map[string]int{
		"There are no tags.":                                          1,
		"Ranks can be lost,\nnever added.":                            1,
		"There are no tags. <!-- absent: ccl.Tag -->":                 0,
		"There are no links. <!-- absent: ccl.LinkTo -->":             1,
		"- There are no tags.\n- More. <!-- absent: ccl.Tag -->":      1,
		"There is no test. <!-- absent: test/docs/absent_test.go -->": 1,
		"# What is not there\n\nThis.":                                0,
		"Where there is no launcher, one is alone.":                   0,
		"There is no way (`TestAbsences`).":                           0,
		"There is no way (`TestOfNothing`).":                          1,
	} {
		require.Len(t, unheld(text, names, tests), want, text)
	}
	for path, text := range pages(t) {
		if filepath.Dir(path) == filepath.Join(root, "docs") || path == filepath.Join(root, "README.md") {
			assert.Empty(t, unheld(text, names, tests), path)
		}
	}
}
