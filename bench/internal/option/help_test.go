package option

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
	require.Contains(t, help, "-h all")
}

// Two screens of 45 lines and 100 columns, with every flag and five examples.
func TestHelpAll(t *testing.T) {
	help := HelpAll()
	lines := strings.Split(strings.TrimSuffix(help, "\n"), "\n")
	require.LessOrEqual(t, len(lines), 90)
	for _, line := range lines {
		require.LessOrEqual(t, len(line), 100, line)
	}
	for _, f := range flags() {
		if f.help != "" {
			require.Contains(t, help, "\n  -"+f.name+" ")
		}
	}
	for _, c := range Commands {
		require.Contains(t, help, "\n  bench "+c.Name+" ")
	}
	_, examples, _ := strings.Cut(help, "Examples:\n")
	require.Equal(t, 5, strings.Count(examples, "bench -"))
}

// The examples must be good command lines.
func TestExamplesParse(t *testing.T) {
	for _, help := range []string{Help(), HelpAll()} {
		_, examples, _ := strings.Cut(help, "Examples:\n")
		for line := range strings.Lines(examples) {
			_, args, found := strings.Cut(line, "bench ")
			if !found {
				break
			}
			args, _, _ = strings.Cut(args, "  ")
			_, err := Parse(strings.Fields(args))
			require.NoError(t, err, args)
		}
	}
}

func TestHelpFor(t *testing.T) {
	for in, want := range map[string]string{"": "-h", "all": "-h all", "fit": "fit -h", "launch": "launch -h"} {
		args, err := HelpFor(strings.Fields(in))
		require.NoError(t, err)
		require.Equal(t, want, strings.Join(args, " "))
	}
	for in, want := range map[string]string{
		"fti":     "help fti: no such command; did you mean fit? (there are ab compare fit plan trace doctor launch)",
		"fit all": "help fit all: of one command at a time: ab compare fit plan trace doctor launch",
	} {
		_, err := HelpFor(strings.Fields(in))
		require.EqualError(t, err, want)
	}
	o, err := Parse([]string{"-h", "all"})
	require.NoError(t, err)
	require.True(t, o.HelpAll)
}
