package option

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Two screens of 45 lines and 100 columns, with every flag and five examples.
func TestHelp(t *testing.T) {
	help := Help()
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
	_, examples, _ := strings.Cut(Help(), "Examples:\n")
	for _, line := range strings.Split(examples, "\n")[:5] {
		_, args, found := strings.Cut(line, "bench ")
		require.True(t, found, line)
		args, _, _ = strings.Cut(args, "  ")
		_, err := Parse(strings.Fields(args))
		require.NoError(t, err, args)
	}
}
