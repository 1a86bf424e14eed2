package algo

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var writeTable = flag.Bool("write", false, "write the table of docs/costs.md")

const (
	costPage  = "../../docs/costs.md"
	costBegin = "<!-- costs: go test ./internal/algo -run TestCostPage -args -write -->\n"
	costEnd   = "<!-- end of costs -->\n"
)

// costRows has a row for each collective and algorithm: the most that any rank pays in each topology.
func costRows(t *testing.T, topologies ...Topology) []string {
	t.Helper()
	var rows []string
	for _, k := range collectives {
		for _, name := range Names(k) {
			row := fmt.Sprintf("| %s | %s |", k.Flag(), name)
			for _, topo := range topologies {
				c, err := mostCost(name, k, topo, 0)
				require.NoError(t, err)
				row += fmt.Sprintf(" %d | %.4g | %d |", c.Steps, c.Sent, c.Peers)
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// TestCostPage compares the table of docs/costs.md with the schedules: all of it, or with -short the half for 8 hosts.
func TestCostPage(t *testing.T) {
	topologies := []Topology{Blocks(8, 1), Blocks(128, 8)}
	if testing.Short() && !*writeTable {
		topologies = topologies[:1]
	}
	rows := costRows(t, topologies...)
	text, err := os.ReadFile(costPage)
	require.NoError(t, err)
	before, rest, found := strings.Cut(string(text), costBegin)
	table, after, ended := strings.Cut(rest, costEnd)
	require.True(t, found && ended, "%s lacks the marks %q and %q", costPage, costBegin, costEnd)
	const head = "| collective | algorithm | 8 x 1: steps | sends | peers | 128 x 8: steps | sends | peers |\n" +
		"|---|---|---|---|---|---|---|---|\n"
	if *writeTable {
		page := before + costBegin + head + strings.Join(rows, "\n") + "\n" + costEnd + after
		require.NoError(t, os.WriteFile(costPage, []byte(page), 0o644))
		return
	}
	body, found := strings.CutPrefix(table, head)
	require.True(t, found, "the table's head differs; write the table by the command in %s", costPage)
	kept := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
	require.Len(t, kept, len(rows), "write the table by the command in %s", costPage)
	for i, want := range rows {
		require.True(t, strings.HasPrefix(kept[i], want), "row %d of %s:\n%s\nwant\n%s", i, costPage, kept[i], want)
	}
}
