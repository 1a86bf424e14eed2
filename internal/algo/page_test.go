package algo

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
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
	for k := Barrier; int(k) < kinds; k++ {
		for _, name := range Names(k) {
			row := fmt.Sprintf("| %s | %s |", k, name)
			for _, topo := range topologies {
				c, err := MostCost(name, k, topo, 0)
				if err != nil {
					t.Fatal(err)
				}
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
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), costBegin)
	table, after, ended := strings.Cut(rest, costEnd)
	if !found || !ended {
		t.Fatalf("%s lacks the marks %q and %q", costPage, costBegin, costEnd)
	}
	const head = "| collective | algorithm | 8 x 1: steps | sends | peers | 128 x 8: steps | sends | peers |\n" +
		"|---|---|---|---|---|---|---|---|\n"
	if *writeTable {
		page := before + costBegin + head + strings.Join(rows, "\n") + "\n" + costEnd + after
		if err := os.WriteFile(costPage, []byte(page), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	body, found := strings.CutPrefix(table, head)
	if !found {
		t.Fatalf("the table's head differs; write the table by the command in %s", costPage)
	}
	kept := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
	if len(kept) != len(rows) {
		t.Fatalf("the table has %d rows, want %d; write it by the command in %s", len(kept), len(rows), costPage)
	}
	for i, want := range rows {
		if !strings.HasPrefix(kept[i], want) {
			t.Errorf("row %d of %s:\n%s\nwant\n%s", i, costPage, kept[i], want)
		}
	}
}
