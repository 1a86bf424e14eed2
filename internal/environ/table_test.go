package environ

import (
	"flag"
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
	want, err := Insert(string(text))
	require.NoError(t, err)
	if *write {
		require.NoError(t, os.WriteFile(page, []byte(want), 0o644))
		return
	}
	require.Equal(t, want, string(text), "go test ./internal/environ -run TestPage -args -write")
}

func TestInsert(t *testing.T) {
	for _, v := range All() {
		require.Contains(t, Table(v.Group), "| `"+v.Name+"` | ")
		for _, text := range []string{v.Takes, v.By, v.Help, v.Default} {
			require.NotContains(t, text, "|", "%s: it would end a cell", v.Name)
		}
	}
	_, err := Insert("# A page\n")
	require.ErrorContains(t, err, "<!-- variables: job -->")
	var page strings.Builder
	for _, g := range []Group{Job, Secret, Engine, Library, Bench, Test} {
		page.WriteString("<!-- variables: " + string(g) + " -->\n| an old row |\n\nText.\n\n")
	}
	got, err := Insert(page.String())
	require.NoError(t, err)
	require.NotContains(t, got, "an old row")
	require.Equal(t, 6, strings.Count(got, "\n\nText.\n\n"))
	again, err := Insert(got)
	require.NoError(t, err)
	require.Equal(t, got, again)
}
