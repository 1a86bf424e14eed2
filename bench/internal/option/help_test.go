package option

import (
	goflag "flag"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/engine"
)

// One screen of 40 lines and 80 columns, with every command.
func TestHelp(t *testing.T) {
	help := Help()
	lines := strings.Split(strings.TrimSuffix(help, "\n"), "\n")
	require.LessOrEqual(t, len(lines), 40)
	for _, line := range lines {
		require.LessOrEqual(t, len(line), 80, line)
	}
	for _, c := range Commands {
		require.Contains(t, help, "\n  bench "+c.Name+" ")
	}
	for _, name := range engine.Names() {
		require.Contains(t, help, " "+name)
		require.Contains(t, HelpAll(), " "+name)
	}
	_, examples, _ := strings.Cut(help, "Examples:\n")
	require.Equal(t, 5, strings.Count(examples, "bench -"))
}

// Every flag in at most 100 columns.
func TestHelpAll(t *testing.T) {
	help := HelpAll()
	for line := range strings.Lines(help) {
		require.LessOrEqual(t, len(line), 101, line)
	}
	for _, f := range flags(new(Options)) {
		if f.help != "" {
			require.Contains(t, help, "\n  -"+f.name+" ")
		}
	}
	o := parsed(t, []string{"-op", "allreduce", "-h", "all"})
	require.True(t, o.Help && o.HelpAll)
	o = parsed(t, []string{"--help"})
	require.True(t, o.Help)
	require.False(t, o.HelpAll)
}

// The examples must be good command lines.
func TestExamplesParse(t *testing.T) {
	_, examples, _ := strings.Cut(Help(), "Examples:\n")
	for _, line := range strings.Split(examples, "\n")[:5] {
		_, args, found := strings.Cut(line, "bench ")
		require.True(t, found, line)
		args, _, _ = strings.Cut(args, "  ")
		_, err := Parse(strings.Fields(args))
		require.NoError(t, err, args)
	}
}

var write = goflag.Bool("write", false, "write the flags into docs/bench.md")

// TestFlagsPage compares the flags of docs/bench.md with those that -h all prints.
func TestFlagsPage(t *testing.T) {
	const page = "../../../docs/bench.md"
	_, flags, found := strings.Cut(HelpAll(), "\nWhat to measure:")
	require.True(t, found)
	flags, _, found = strings.Cut(flags, "\nOperations:")
	require.True(t, found)
	want := "```\nWhat to measure:" + flags + "\n```\n"

	text, err := os.ReadFile(page)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), "TestFlagsPage -args -write -->\n")
	require.True(t, found)
	kept, after, found := strings.Cut(rest, "<!-- end of flags -->\n")
	require.True(t, found)
	if *write {
		page2 := before + "TestFlagsPage -args -write -->\n" + want + "<!-- end of flags -->\n" + after
		require.NoError(t, os.WriteFile(page, []byte(page2), 0o644))
		return
	}
	require.Equal(t, want, kept, "write it by the command in %s", page)
}
