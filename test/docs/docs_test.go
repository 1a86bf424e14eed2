// Package docs checks what the documents say of the tree.
package docs

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
)

const root = "../.."

// pages are all documents, by their path below the root.
func pages(t *testing.T) map[string]string {
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && path != root && (strings.HasPrefix(name, ".") || name == "testdata") {
			return filepath.SkipDir
		}
		if filepath.Ext(path) != ".md" {
			return nil
		}
		text, err := os.ReadFile(path)
		all[path] = string(text)
		return err
	}))
	require.Contains(t, all, filepath.Join(root, "README.md"))
	return all
}

var (
	link  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	fence = regexp.MustCompile("(?s)```.*?```")
	title = regexp.MustCompile(`(?m)^#+ (.*)$`)
)

// broken lists the links of a page that lead nowhere: to a file that is not there, or a heading.
func broken(path, text string, all map[string]string) []string {
	var bad []string
	for _, m := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
			continue
		}
		file, heading, _ := strings.Cut(m[1], "#")
		to := path
		if file != "" {
			to = filepath.Join(filepath.Dir(path), file)
		}
		if _, err := os.Stat(to); err != nil {
			bad = append(bad, m[1])
		} else if heading != "" && !hasHeading(all[to], heading) {
			bad = append(bad, m[1])
		}
	}
	return bad
}

// hasHeading reports whether a page has a heading with that anchor: lower case, words joined by hyphens.
func hasHeading(text, anchor string) bool {
	for _, m := range title.FindAllStringSubmatch(text, -1) {
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ' || r == '-':
				return '-'
			case r == '_' || 'a' <= r && r <= 'z' || '0' <= r && r <= '9':
				return r
			}
			return -1
		}, strings.ToLower(m[1]))
		if name == anchor {
			return true
		}
	}
	return false
}

func TestLinks(t *testing.T) {
	all := pages(t)
	for path, text := range all {
		require.Empty(t, broken(path, text, all), path)
	}
	readme := filepath.Join(root, "README.md")
	for _, planted := range []string{"[x](docs/none.md)", "[x](README.md#no-such-heading)"} {
		require.Len(t, broken(readme, planted, all), 1, planted)
	}
	require.Empty(t, broken(readme, "[x](README.md#two-commands) [y](https://go.dev) ```\n[z](none)\n```", all))
}

// wide lists the lines of a page that have more than 100 columns. Rows of tables, code, output and badges cannot be
// wrapped.
func wide(text string) (bad []string) {
	for _, line := range strings.Split(fence.ReplaceAllString(text, ""), "\n") {
		if utf8.RuneCountInString(line) > 100 && !strings.HasPrefix(line, "|") && !strings.HasPrefix(line, "    ") && !strings.HasPrefix(line, "![") && !strings.HasPrefix(line, "[![") {
			bad = append(bad, line)
		}
	}
	return bad
}

// The prose of the documents has at most 100 columns.
func TestProseIsWrapped(t *testing.T) {
	names, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range append(names, filepath.Join(root, "README.md"), filepath.Join(root, "ARCHITECTURE.md"), filepath.Join(root, "CONTRIBUTING.md")) {
		text, err := os.ReadFile(name)
		require.NoError(t, err)
		require.Empty(t, wide(string(text)), name)
	}
	long := strings.Repeat("a word ", 15)
	require.Equal(t, []string{long}, wide("```\n"+long+"\n```\n| "+long+" |\n    "+long+"\n"+long))
}

// whereIs lists the rows of CONTRIBUTING's table "Where is ...": the question, and the files that answer it.
func whereIs(text string) (rows [][2]string) {
	_, text, _ = strings.Cut(text, "## Where is")
	text, _, _ = strings.Cut(text, "\n## ")
	for _, line := range strings.Split(text, "\n") {
		cells := strings.Split(strings.Trim(line, "| "), " | ")
		if len(cells) != 2 || !strings.HasSuffix(cells[0], "?") {
			continue
		}
		var files []string
		for _, m := range link.FindAllStringSubmatch(cells[1], -1) {
			file, _, _ := strings.Cut(m[1], "#")
			files = append(files, file)
		}
		rows = append(rows, [2]string{cells[0], strings.Join(files, " ")})
	}
	return rows
}

// Each question that a newcomer asks first has one file as its answer, and the file exists.
func TestWhereIs(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	require.NoError(t, err)
	rows := whereIs(string(text))
	for _, row := range rows {
		info, err := os.Stat(filepath.Join(root, row[1]))
		require.NoError(t, err, row[0])
		require.True(t, info.Mode().IsRegular(), "%s: %s is not one file", row[0], row[1])
	}
	for _, question := range []string{
		"a rank's death noticed", "decides the cause of a failure", "4 KiB of AllReduce between two processes copied",
		"the threshold between two algorithms", "a TCP connection authenticated", "bench decide how many ranks to start",
		"Replace begin", "a spare wait", "a newcomer wait", "their rolls", "a Subset", "OnDone", "the C interface", "hosts in virtual time",
	} {
		require.True(t, slices.ContainsFunc(rows, func(row [2]string) bool { return strings.Contains(row[0], question) }), question)
	}
	require.Equal(t, [][2]string{{"Where is x?", "a b"}}, whereIs("## Where is\n| question | file |\n|---|---|\n| Where is x? | [y](a) [z](b#c) |\n\n## Next\n| Where? | [y](c) |"))
}

// CI runs README's two commands in README's words.
func TestTwoCommands(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	_, section, ok := strings.Cut(string(readme), "\n## Two commands\n")
	require.True(t, ok)
	section, _, _ = strings.Cut(section, "\nNext, ")
	commands := regexp.MustCompile(`(?m)^    ((?:go|make) .*)$`).FindAllStringSubmatch(section, -1)
	require.Len(t, commands, 2)
	ci, err := os.ReadFile("../../.ci/run")
	require.NoError(t, err)
	for _, c := range commands {
		require.Regexp(t, `(?m)^((\w+=\w+ )*|later \d+ )stage \w+ `+regexp.QuoteMeta(c[1])+`$`, string(ci))
	}
}
