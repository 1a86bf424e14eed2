package docs

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	stageOf      = regexp.MustCompile(`(?m)^(?:\w+=\w+ |later \d+ |in_turn \S+ \d+ )?(?:stage|spare \d+) ([a-z0-9-]+) `)
	matrixStages = regexp.MustCompile(`(?m)^ +- stages: (?:>-\n)?((?:.|\n {14})*)$`)
	matrixTarget = regexp.MustCompile(`(?m)^ +- target: (.*)$`)
	ruleOf       = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):`)
	generatedBy  = regexp.MustCompile(`(?m)^// Code generated .* DO NOT EDIT\.$`)
)

// noRule lists the targets that a workflow makes and the Makefile has no rule for.
func noRule(workflow, makefile string) (bad []string) {
	rules := map[string]bool{}
	for _, m := range ruleOf.FindAllStringSubmatch(makefile, -1) {
		rules[m[1]] = true
	}
	for _, m := range matrixTarget.FindAllStringSubmatch(workflow, -1) {
		for _, target := range strings.Fields(m[1]) {
			if !rules[target] {
				bad = append(bad, target)
			}
		}
	}
	return bad
}

// CI's machines run the stages of .ci/run, each on one of six, but for install, which is part of each.
func TestMatrixIsCI(t *testing.T) {
	run, err := os.ReadFile(filepath.Join(root, ".ci", "run"))
	require.NoError(t, err)
	workflow, err := os.ReadFile(filepath.Join(root, ".github", "workflows", "ci.yml"))
	require.NoError(t, err)
	var stages, machines []string
	for _, m := range stageOf.FindAllStringSubmatch(string(run), -1) {
		stages = append(stages, m[1])
	}
	lists := matrixStages.FindAllStringSubmatch(string(workflow), -1)
	require.Len(t, lists, 6)
	for _, m := range lists {
		machines = append(machines, strings.Fields(m[1])...)
	}
	require.ElementsMatch(t, stages, append(machines, "install"))
}

// The nightly workflow makes targets of the Makefile; the forms for bugs ask for what bench doctor prints.
func TestGitHub(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	text, err := os.ReadFile(filepath.Join(root, ".github", "workflows", "nightly.yml"))
	require.NoError(t, err)
	require.Regexp(t, matrixTarget, string(text))
	require.Empty(t, noRule(string(text), string(makefile)))
	require.Equal(t, []string{"x-y"}, noRule("  - target: test x-y\n", "test: ## all\n\tgo test\n"))
	for _, form := range []string{"bug.yml", "slow.yml", "question.yml", "wish.yml"} {
		text, err := os.ReadFile(filepath.Join(root, ".github", "ISSUE_TEMPLATE", form))
		require.NoError(t, err)
		require.Contains(t, string(text), "bench doctor", form)
	}
}

// .gitattributes marks each generated file, so that reviews fold it.
func TestGeneratedFilesAreMarked(t *testing.T) {
	attributes, err := os.ReadFile(filepath.Join(root, ".gitattributes"))
	require.NoError(t, err)
	out, err := exec.Command("git", "-C", root, "grep", "-lE", `^// Code generated .* DO NOT EDIT\.$`, "--", "*.go", "*.s").Output()
	if err != nil {
		t.Skipf("hardware: no git, or no repository here: %v", err)
	}
	names := bytes.Fields(out)
	require.Greater(t, len(names), 4)
	for _, name := range names {
		text, err := os.ReadFile(filepath.Join(root, string(name)))
		require.NoError(t, err)
		if at := generatedBy.FindIndex(text); at != nil && at[0] == 0 {
			require.Contains(t, string(attributes), "\n"+string(name)+" linguist-generated\n")
		}
	}
}
