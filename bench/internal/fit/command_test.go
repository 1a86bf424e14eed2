package fit

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/report"
)

func save(t *testing.T, f *report.File) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run.json")
	require.NoError(t, f.Save("J", path, (*report.File).JSON))
	return path
}

func TestCommand(t *testing.T) {
	run := save(t, measured(t, 64, 1<<20))
	local := measured(t, 8, 1<<16)
	for i := range local.Results {
		local.Results[i].Algorithm = "staged over shared memory"
	}
	for _, tc := range []struct {
		args   []string
		status int
		want   string
	}{
		{[]string{run}, 0, "# alpha 5."},
		{[]string{run, "-extrapolate", "1024"}, 0, "# EXTRAPOLATED from 64 to 1024 ranks. Assumed: "},
		{[]string{run, "-extrapolate", "38400"}, 1, "more than 16 times the 64 ranks"},
		{[]string{run, "-extrapolate", "38400,120960", "-force"}, 0, "# EXTRAPOLATED from 64 to 120960 ranks"},
		{[]string{run, "-extrapolate", "many"}, 2, `"many" is not a number of ranks`},
		{[]string{run, "-op", "broadcast"}, 2, "-op broadcast: "},
		{[]string{run, "-extrapolte", "1024"}, 2, "did you mean -extrapolate?"},
		{[]string{save(t, local), "-extrapolate", "64"}, 1, "whose messages are not known"},
		{nil, 2, "it fits one file"},
		{[]string{"/no/such"}, 2, "cannot be read"},
		{[]string{"-h"}, 0, "-extrapolate LIST"},
	} {
		var out, errs bytes.Buffer
		require.Equal(t, tc.status, Command(tc.args, &out, &errs), "%v: %s", tc.args, &errs)
		require.Contains(t, out.String()+errs.String(), tc.want)
		for _, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
			if strings.HasPrefix(line, " ") && tc.status == 0 && tc.args[0] != "-h" {
				require.True(t, strings.HasSuffix(line, "EXTRAPOLATED"), line)
			}
		}
	}
}

func TestPlan(t *testing.T) {
	run := save(t, measured(t, 64, 1<<20))
	falling := measured(t, 8, 1<<16) // small sizes were disturbed
	for i := range falling.Results {
		r := &falling.Results[i]
		r.Algorithm, r.OutOfPlace.Time = "staged over shared memory", float64(1000-i)
	}
	disturbed := save(t, falling)
	for _, tc := range []struct {
		args   string
		status int
		want   string
	}{
		{"-inside 1.5,100 -between 5,25", 0, "# inside a node 1.5 us, 100 GB/s; between nodes 5 us, 25 GB/s"},
		{"-inside 1.5,100 -between 5,25 -model llama-7b -nodes 64 -ppn 12", 0, "ddp over nodes with pp, tp inside a node, and zero1"},
		{"-inside 1.5,100 -between 5,90", 0, "about as fast as inside"},
		{"-inside 1.5,200 -nodes 1", 0, "comparable"},
		{"-inside 1,100 -nodes 1", 0, "One node with fast links"}, // 1/(1/100/1e3)/1e3 is less than 100
		{"-inside 1,101 -nodes 1", 0, "One node with fast links"},
		{"-inside 1,99 -nodes 1", 0, "One node with slow links"},
		{"-inside 5,25 -nodes 1 -ppn 8", 0, "pp, ulysses, ring, tp"}, // by the bytes of the papers: see the package model
		{"-inside 1.5,20 -nodes 1", 0, "try pp first"},
		{"-inside 1.5,100 -between " + run, 0, "between nodes 5."},
		{"-nodes 1 -inside " + disturbed, 1, "allreduce: the times do not grow with the size"},
		{"-inside 1.5,100", 2, "-between is missing"},
		{"", 2, "-inside is missing"},
		{"-inside x,y -nodes 1", 2, "-inside x,y: a link is its latency"},
		{"-inside 1 -between 5,25", 2, "-inside 1: a link is its latency in microseconds and its bandwidth in GB/s, such as 5,25"},
		{"-inside 1,5 -between 1.5/100", 2, "-between 1.5/100: a link is its latency"},
		{"-inside 1,5 -between none.json", 2, "none.json: it cannot be read"},
		{"-inside 1,1 -nodes 0", 2, "-nodes 0: it must be a whole number from 1 to 1048576"},
		{"-inside 1,1 -ppn x", 2, "-ppn x: it must be a whole number from 1 to 4096"},
		{"run.json", 2, "run.json: an argument without a flag"},
		{"-inside 1,1 -nodes 1 -model lama-7b", 2, "did you mean llama-7b?"},
		{"-inside 1,1 -nodes 1 -bytes 3", 2, "2 or 4"},
		{"-insde 1,1", 2, "did you mean -inside?"},
		{"-h", 0, "-between LINK"},
	} {
		var out, errs bytes.Buffer
		require.Equal(t, tc.status, Plan(strings.Fields(tc.args), &out, &errs), "%v: %s", tc.args, &errs)
		require.Contains(t, out.String()+errs.String(), tc.want)
	}
}

// A model without layers has no tensor parallelism.
func TestPlanOfResNet(t *testing.T) {
	var out bytes.Buffer
	require.Zero(t, Plan(strings.Fields("-inside 1,10 -nodes 1 -model resnet50"), &out, &out))
	require.NotContains(t, out.String(), "ulysses")
	require.Contains(t, out.String(), "zero3")
}

// What a ring takes, by hand: 2(n-1) messages, and 2(n-1)/n of the bytes.
func TestStep(t *testing.T) {
	var out bytes.Buffer
	require.Zero(t, Plan(strings.Fields("-inside 0,10 -nodes 1 -ppn 4 -bytes 4"), &out, &out))
	// gpt2-85m: 343.16 MB x 1.5 / 10 GB/s = 51.47 ms.
	require.Regexp(t, `ddp +51\.47 +51\.47`, out.String())
}

// The command by which docs/bench.md answers its question is good for a run between hosts.
func TestDocumentedCommand(t *testing.T) {
	page, err := os.ReadFile("../../../docs/bench.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(page), "| What would 10,000 ranks take? | `bench fit run.json ")
	require.True(t, found)
	flags, _, _ := strings.Cut(after, "`")
	var out, errs bytes.Buffer
	require.Zero(t, Command(append([]string{save(t, measured(t, 2, 1<<20))}, strings.Fields(flags)...), &out, &errs), &errs)
	require.Contains(t, out.String(), "# EXTRAPOLATED from 2 to 10000 ranks.")
}
