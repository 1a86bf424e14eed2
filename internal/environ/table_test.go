package environ

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var write = flag.Bool("write", false, "write the tables of docs/environment.md anew")

// The tables of docs/environment.md are those of the registry. Run it with -args -write after a change to it.
func TestPage(t *testing.T) {
	const page = "../../docs/environment.md"
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	want, err := insert(string(text))
	require.NoError(t, err)
	if *write {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(text), "go test ./internal/environ -run TestPage -args -write")
}

func TestInsert(t *testing.T) {
	for _, v := range All() {
		require.Contains(t, table(v.Group), "| `"+v.Name+"` | ")
		for _, text := range []string{v.Takes, v.By, v.Help, v.Default} {
			require.NotContains(t, text, "|", "%s: it would end a cell", v.Name)
		}
	}
	_, err := insert("# A page\n")
	require.ErrorContains(t, err, "<!-- variables: job -->")
	var page strings.Builder
	for _, g := range []Group{Job, Secret, Engine, Library, Bench, Test} {
		page.WriteString("<!-- variables: " + string(g) + " -->\n| an old row |\n\nText.\n\n")
	}
	got, err := insert(page.String())
	require.NoError(t, err)
	require.NotContains(t, got, "an old row")
	require.Equal(t, 6, strings.Count(got, "\n\nText.\n\n"))
	again, err := insert(got)
	require.NoError(t, err)
	require.Equal(t, got, again)
}

// table is a group's variables as a table of Markdown.
func table(g Group) string {
	var b strings.Builder
	if g == Test {
		b.WriteString("| variable | read by | meaning |\n|---|---|---|\n")
	} else {
		b.WriteString("| variable | value | read by | meaning |\n|---|---|---|---|\n")
	}
	for _, v := range all {
		switch {
		case v.Group != g:
		case g == Test:
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", v.Name, v.By, cmp.Or(v.Help, "the tests set it for the processes that they start"))
		default:
			fmt.Fprintf(&b, "| `%s` | %s | %s | %s. Default: %s |\n", v.Name, v.Takes, v.By, v.Help, v.Default)
		}
	}
	return b.String()
}

// insert returns page with its tables as the registry has them: each stands between a comment that
// names its group, <!-- variables: job -->, and the next empty line.
func insert(page string) (string, error) {
	for _, g := range []Group{Job, Secret, Engine, Library, Bench, Test} {
		mark := fmt.Sprintf("<!-- variables: %s -->\n", g)
		before, after, found := strings.Cut(page, mark)
		if !found {
			return "", fmt.Errorf("the page has no %q", strings.TrimSpace(mark))
		}
		_, after, _ = strings.Cut(after, "\n\n")
		page = before + mark + table(g) + "\n" + after
	}
	return page, nil
}
