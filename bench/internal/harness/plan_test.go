package harness

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/option"
	"github.com/goccl/goccl/ccl/boot"
)

func TestPlanCheck(t *testing.T) {
	none := boot.Launch{Launcher: "none", Size: 1, Locals: 1}
	four := boot.Launch{Launcher: "pmi", Rank: 1, Size: 4, Locals: 4}
	for _, tc := range []struct {
		name  string
		where boot.Launch
		ours  bool
		set   func(o *option.Options)
		want  string
	}{
		{"default", none, false, func(*option.Options) {}, ""},
		{"root", none, false, func(o *option.Options) { o.NP, o.Root = 2, 2 }, "-r 2: there are 2 ranks, so the root is 0 to 1, or all"},
		{"root of threads", none, false, func(o *option.Options) { o.NP, o.Threads, o.Root = 2, 2, 3 }, ""},
		{"hosts", none, false, func(o *option.Options) { o.NP, o.Hosts = 2, 3 }, "-hosts 3: there are only 2 processes to spread over them; give -np 3 or more"},
		{"hosts of threads", none, false, func(o *option.Options) { o.NP, o.Threads, o.Hosts = 1, 4, 2 }, ""},
		{"launched", four, false, func(o *option.Options) { o.Root = 3 }, ""},
		{"launched: root", four, false, func(o *option.Options) { o.Root = 4 }, "-r 4: there are 4 ranks, so the root is 0 to 3, or all"},
		{"launched: hosts", four, false, func(o *option.Options) { o.Hosts = 2 }, "-hosts 2: pmi has started the ranks, and placed them; leave it out"},
		{"launched: np", four, false, func(o *option.Options) { o.NP, o.NPGiven = 2, true }, "-np 2: pmi has started 4 processes; leave it out"},
		{"launched: same np", four, false, func(o *option.Options) { o.NP, o.NPGiven = 4, true }, ""},
		{"ours", four, true, func(o *option.Options) { o.NP, o.NPGiven, o.Hosts = 2, true, 2 }, ""},
		{"ours, but alone", none, true, func(*option.Options) {}, "GOCCL_BENCH_PARENT is set, but nothing tells this process its rank; unset it"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p := plan{Options: option.Default(), where: tc.where, launched: tc.where.Launcher != "none", ours: tc.ours}
			tc.set(&p.Options)
			err := p.check()
			if tc.want == "" {
				require.NoError(t, err)
			} else {
				require.EqualError(t, err, tc.want)
			}
		})
	}
}

func TestFitsMemory(t *testing.T) {
	p := plan{Options: option.Default(), where: boot.Launch{Launcher: "none"}}
	p.NP, p.Threads = 4, 2
	require.NoError(t, p.fitsMemory(0))
	require.NoError(t, p.fitsMemory(1<<30+1<<20), "and what lies between buffers")
	require.EqualError(t, p.fitsMemory(1<<29), "-e 64M: 8 ranks with two buffers of 64 MiB each need more than this machine's 512 MiB of memory; try -e 16M")
	p.Max, p.Misalign = 1<<20, 1e9
	require.EqualError(t, p.fitsMemory(1<<29), "-u 1000000000: 8 ranks with two buffers of 7630 MiB each need more than this machine's 512 MiB of memory; try a smaller one: 1 is off any alignment")
	p.Misalign = math.MaxInt
	require.ErrorContains(t, p.fitsMemory(1<<29), "-u 9223372036854775807: ")
	p.Misalign, p.Rotate = 0, 100
	require.EqualError(t, p.fitsMemory(1<<29), "-rotate 100: 8 ranks with two buffers of 100 MiB each need more than this machine's 512 MiB of memory; try -rotate 31")
	p.Rotate = 31
	require.NoError(t, p.fitsMemory(1<<29))
	p.Rotate = 1
	p.Max = 900 << 20 // as it was given, whatever the last line would be
	require.ErrorContains(t, p.fitsMemory(1<<29), "-e 900M: ")
	p.Lengths = []option.Length{{Bytes: 8}, {Bytes: 1 << 30}}
	require.EqualError(t, p.fitsMemory(1<<29), "-sizes: 8 ranks with two buffers of 1024 MiB each need more than this machine's 512 MiB of memory; leave the largest out")
}
