package docs

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// term is a row of the glossary: a word, and what is not said in its place.
type term struct {
	word string
	not  []string
}

// terms reads the glossary's table.
func terms(text string) (all []term) {
	for _, line := range strings.Split(text, "\n") {
		cells := strings.Split(strings.Trim(line, "|"), " | ")
		if !strings.HasPrefix(line, "| ") || len(cells) != 3 || strings.TrimSpace(cells[0]) == "word" {
			continue
		}
		row := term{word: strings.TrimSpace(cells[0])}
		for _, n := range strings.Split(cells[2], ",") {
			if n = strings.TrimSpace(n); n != "" {
				row.not = append(row.not, n)
			}
		}
		all = append(all, row)
	}
	return all
}

// scheduled are the pages that may say node, as schedulers do.
var scheduled = regexp.MustCompile(`(launch|bench|bench-flags|bench-compare|environment|lab|troubleshooting|coming-from|glossary|README)\.md$`)

var (
	code       = regexp.MustCompile("`[^`\n]*`")
	node       = regexp.MustCompile(`(?i)\bnodes?\b`)
	otherNodes = regexp.MustCompile(`(?i)NUMA node|graph's nodes`)
)

// misused lists what a page says in the place of the glossary's words. Code, output and rows of tables that programs write
// are not prose.
func misused(path, text string, all []term) (bad []string) {
	text = code.ReplaceAllString(fence.ReplaceAllString(text, ""), "")
	var prose []string
	for _, line := range strings.Split(text, "\n") {
		if !strings.HasPrefix(line, "    ") {
			prose = append(prose, line)
		}
	}
	text = strings.Join(strings.Fields(strings.Join(prose, " ")), " ")
	for _, row := range all {
		for _, n := range row.not {
			if regexp.MustCompile(`(?i)\b` + regexp.QuoteMeta(n) + `\b`).MatchString(text) {
				bad = append(bad, n+": say "+row.word)
			}
		}
	}
	if !scheduled.MatchString(path) && node.MatchString(otherNodes.ReplaceAllString(text, "")) {
		bad = append(bad, "node: say host")
	}
	return bad
}

// The documents use one word for each thing.
func TestGlossary(t *testing.T) {
	all := pages(t)
	glossary := terms(all[filepath.Join(root, "docs", "glossary.md")])
	require.Greater(t, len(glossary), 20)
	words := map[string]bool{}
	for _, row := range glossary {
		require.False(t, words[row.word], "%s stands twice", row.word)
		words[row.word] = true
	}
	for _, word := range []string{
		"peer", "host", "node", "engine", "backend", "row", "limit", "rank", "lost", "pool", "roll", "seat", "generation", "meeting", "hall", "lobby",
		"spare", "newcomer", "guest", "Replace", "Grow", "Subset", "Link", "reserve", "outcome",
	} {
		require.True(t, words[word], word)
	}
	for path, text := range all {
		if in := filepath.ToSlash(path); strings.Contains(in, "/docs/measured/") || strings.HasSuffix(in, "glossary.md") || strings.HasSuffix(in, "CHANGELOG.md") {
			continue // what programs have written, what defines the words, and history
		}
		require.Empty(t, misused(path, text, glossary), path)
	}
	planted := []term{{"lost", []string{"evicted", "dead rank"}}}
	require.Equal(t, []string{"evicted: say lost", "dead rank: say lost", "node: say host"},
		misused("docs/x.md", "It is Evicted; a dead\nrank of a node. `evicted`\n\n    evicted node\n", planted))
	require.Empty(t, misused("docs/launch.md", "a node", planted))
	require.Empty(t, misused("docs/x.md", "a NUMA node", planted))
}
