package harness

import (
	"bytes"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/bench/internal/report"
	"github.com/goccl/goccl/bench/internal/verify"
)

func newOutput() (o *output, out, err *bytes.Buffer) {
	out, err = new(bytes.Buffer), new(bytes.Buffer)
	return &output{w: out, err: err, file: &report.File{}, opts: &option.Options{}}, out, err
}

func TestComplain(t *testing.T) {
	o, _, err := newOutput()
	row := &report.Row{Op: "allreduce", Type: "float", Redop: "sum", Size: 1024}
	all := []findings{{}, {wrong: 3, first: verify.Wrong{Index: 17, Got: uint64(math.Float32bits(3)), Want: uint64(math.Float32bits(5))}}, {wrong: 1}}
	o.complain(all, row, true)
	require.Equal(t, "bench: wrong data: allreduce float sum, 1024 bytes, in place: rank 1: element 17 is 3, not 5 (wrong there: 3)\n", err.String())
	for range 20 {
		o.complain(all, row, false)
	}
	require.Equal(t, mostComplaints, strings.Count(err.String(), "\n"))
	require.Len(t, o.file.Errors, 21)

	o, _, err = newOutput()
	o.complain(all, &report.Row{Op: "barrier", Type: "none", Redop: "none"}, false)
	require.Equal(t, "bench: wrong data: barrier none none, 0 bytes, out of place: rank 1 left before every rank had come\n", err.String())
}

func TestProgressOnlyOnATerminal(t *testing.T) {
	o, out, err := newOutput()
	o.progress("allreduce: %s", "8")
	require.Empty(t, err.String())
	o.terminal = true
	o.progress("allreduce: %s", "8")
	require.Equal(t, "\x01allreduce: 8\n", err.String())
	require.Empty(t, out.String())
}

func TestSkip(t *testing.T) {
	o, out, _ := newOutput()
	o.skip("allreduce f8e4m3 sum", errors.New("it is only moved"))
	require.Empty(t, out.String())
	o.tail()
	require.Equal(t, "# allreduce f8e4m3 sum: not supported: it is only moved\n", out.String())
	require.Equal(t, []string{"allreduce f8e4m3 sum"}, o.file.Skipped)
}

// The ranks but 0 have no output.
func TestNoOutput(t *testing.T) {
	var o *output
	o.progress("x")
	o.complain([]findings{{wrong: 1}}, nil, false)
	o.head("x", true)
	o.skip("x", nil)
	o.comment("x")
	require.NoError(t, o.row(nil))
	require.NoError(t, o.header())
}

// With -q what nobody asked for is not there: remarks, and that the machine is busy. What a flag asks for is.
func TestQuietHasNoComments(t *testing.T) {
	for _, quiet := range []bool{false, true} {
		o, out, _ := newOutput()
		o.opts.Quiet = quiet
		o.comment("a comment")
		o.busy(500, 0)
		row := &report.Row{Op: "allreduce", Type: "float", Redop: "sum", Root: -1, Size: 8, Overlap: report.NewOverlap(1, 1, 1)}
		row.OutOfPlace.Slowest = &report.Straggler{Rank: 1, Host: "h", Late: 9}
		require.NoError(t, o.row(row))
		o.note("a note")
		o.tail()
		for _, text := range []string{"a comment", "busy: ", "late at the barrier"} {
			require.Equal(t, !quiet, strings.Contains(out.String(), text), text)
		}
		require.Contains(t, out.String(), "overlap: ")
		require.Contains(t, out.String(), "a note")
		require.NotEmpty(t, o.file.Busy, "the files have it")
	}
}
