package option

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/coll"
)

func TestSpan(t *testing.T) {
	for in, want := range map[string]time.Duration{"2s": 2 * time.Second, "500us": 500 * time.Microsecond, "10m": 10 * time.Minute, "1.5": 1500 * time.Millisecond} {
		got, err := span(in)
		require.NoError(t, err, in)
		require.Equal(t, want, got, in)
	}
	for _, bad := range []string{"", "x", "0", "-1s", "1e300", "NaN", "5 s"} {
		_, err := span(bad)
		require.Error(t, err, bad)
	}
}

func TestConflicts(t *testing.T) {
	for args, want := range map[string]string{
		"-sizes 8 -b 4":            "-sizes and -b: the list has all sizes; leave one out",
		"-n 5 -time 1s":            "-n and -time: the iterations are a number, or what fits a time; leave one out",
		"-N 2 -for 1s":             "-N and -for: it goes on for a number of cycles, or for a time; leave one out",
		"-plan ddp -op x":          "-op x: no such operation; there are " + strings.Join(coll.Names(), " "),
		"-model resnet50":          "-model resnet50: it says whose step -plan replays; add -plan ddp, or write -sizes resnet50",
		"-mem device":              "-mem device: the cpu backend works on host memory; name the one for your device with -backend",
		"-device 1":                "-device: the cpu backend has no devices; name the one for yours with -backend, or leave it out",
		"-matrix spread:0.5":       "-matrix: only alltoallv sends by a matrix; add -op alltoallv, or leave it out",
		"-K 20":                    "-K 20: of 20 iterations that leaves none; give -n 21 or more",
		"-J x -csv ./x":            "-csv ./x: -J writes that file; give another name",
		"-min-busbw -3":            "-min-busbw -3: it must be a number of GB/s, such as 12.5",
		"-min-busbw Inf":           "-min-busbw Inf: it must be a number of GB/s, such as 12.5",
		"-plan ddp -d int8":        "-plan ddp -d int8: gradients are half, bfloat16, float or double",
		"-z 4":                     "-z 4: it must be 0 (issue all, then wait), 1 (wait and barrier after each), 2 (wait after each) or 3 (as 0, and a barrier)",
		"-hints ctas=4":            `-hints ctas=4: "ctas=4": a hint is min-ctas=N, max-ctas=N, cta-policy=NAME, traffic-class=N, launch-order=1 or net=NAME`,
		"-hints max-ctas=-4":       "-hints max-ctas=-4: max-ctas is -4: it must not be negative",
		"-R 3":                     "-R 3: it must be 0 (ordinary memory), 1 (registered) or 2 (symmetric windows)",
		"-backend cpu,mpj":         `-backend cpu,mpj: no such backend; did you mean mpi? There are cpu nccl rccl oneccl mpi`,
		"-plan tp -model resnet50": "-plan tp: resnet50 has no transformer layers; the schemes for it are ddp, zero1, zero2 and zero3",
	} {
		_, err := Parse(strings.Fields(args))
		require.EqualError(t, err, want, args)
	}
}

func TestNewFlags(t *testing.T) {
	o := parsed(t, strings.Fields("-z 0 -N 0 -R 1 -u 3 -rotate 4 -flush=false -I -K 2 -S -M -min-busbw 1.5 -max-p99 3ms -backend cpu,cpu -csv a -html b -ceiling 25"))
	require.Equal(t, WaitAtEnd, o.Blocking)
	require.Zero(t, o.Cycles)
	require.True(t, o.Registered && o.Iterations && o.Stamp && o.Memory && !o.Flush)
	require.Equal(t, []int{3, 4, 2}, []int{o.Misalign, o.Rotate, o.Skip})
	require.Equal(t, 3*time.Millisecond, o.MaxP99)
	require.Equal(t, []string{"cpu", "cpu"}, o.Backends)
	require.Equal(t, []float64{1.5, 25}, []float64{o.MinBusBW, o.Ceiling})
	require.True(t, o.Individually())
	require.False(t, Default().Individually())
}
