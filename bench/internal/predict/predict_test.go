package predict

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/model"
)

func TestCommand(t *testing.T) {
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
		{"-inside 1.5,100", 2, "-between is missing"},
		{"", 2, "-inside is missing"},
		{"-inside x,y -nodes 1", 2, "-inside x,y: a link is its latency"},
		{"-inside 1 -between 5,25", 2, "-inside 1: a link is its latency in microseconds and its bandwidth in GB/s, such as 5,25"},
		{"-inside 1,5 -between 1.5/100", 2, "-between 1.5/100: a link is its latency"},
		{"-inside 1,5 -between none.json", 2, "-between none.json: a link is its latency"},
		{"-inside 1,1 -nodes 0", 2, "-nodes 0: it must be a whole number from 1 to 1048576"},
		{"-inside 1,1 -ppn x", 2, "-ppn x: it must be a whole number from 1 to 4096"},
		{"run.json", 2, "run.json: an argument without a flag"},
		{"-inside 1,1 -nodes 1 -model lama-7b", 2, "did you mean llama-7b?"},
		{"-inside 1,1 -nodes 1 -bytes 3", 2, "2 or 4"},
		{"-insde 1,1", 2, "did you mean -inside?"},
		{"-h", 0, "-between LINK"},
	} {
		var out, errs bytes.Buffer
		require.Equal(t, tc.status, Command(strings.Fields(tc.args), &out, &errs), "%v: %s", tc.args, &errs)
		require.Contains(t, out.String()+errs.String(), tc.want)
	}
}

// A model without layers has no tensor parallelism.
func TestPlanOfResNet(t *testing.T) {
	var out bytes.Buffer
	require.Zero(t, Command(strings.Fields("-inside 1,10 -nodes 1 -model resnet50"), &out, &out))
	require.NotContains(t, out.String(), "ulysses")
	require.Contains(t, out.String(), "zero3")
}

// What a ring takes, by hand: 2(n-1) messages, and 2(n-1)/n of the bytes.
func TestStep(t *testing.T) {
	var out bytes.Buffer
	require.Zero(t, Command(strings.Fields("-inside 0,10 -nodes 1 -ppn 4 -bytes 4"), &out, &out))
	// gpt2-85m: 343.16 MB x 1.5 / 10 GB/s = 51.47 ms.
	require.Regexp(t, `ddp +51\.47 +51\.47`, out.String())
}

// What algorithms take that the papers give.
func TestCost(t *testing.T) {
	k := link{alpha: 5, beta: 1e-4}
	for _, tc := range []struct {
		op       string
		elements int
		want     float64
	}{
		{"allreduce", 100, 3 * (5 + .04)},
		{"allreduce", 1e6, 2*3*5 + 1.75*400},
		{"reducescatter", 1e6, 3*5 + .875*400},
		{"allgather", 1e6, 3*5 + .875*400},
		{"alltoall", 1e6, 7*5 + .875*400},
		{"sendrecv", 1e6, 5 + 400},
	} {
		require.InDelta(t, tc.want, k.cost(model.Call{Op: tc.op, Elements: tc.elements}, 8, 4), 1e-9, tc.op)
	}
}

func FuzzLink(f *testing.F) {
	for _, s := range []string{"1.5,100", "nan,1", "1,inf", "1e308,1e-308", ",", "-1,1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if l, err := readLink(s); err == nil && !(l.alpha >= 0 && l.beta > 0) {
			t.Fatalf("%q is %+v", s, l)
		}
	})
}
