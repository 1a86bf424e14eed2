package report

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/bench/internal/option"
)

func TestHeader(t *testing.T) {
	o := option.Default()
	f := &File{Goccl: "0.1.0", Go: "go1.25 linux/amd64", Config: Config{
		Setup:   Setup{Launcher: "started here", Ranks: 2, Processes: 2, Hosts: 1, Engine: "cpu", Transport: "shared memory", CPU: "Acme 9000"},
		Devices: []Place{{0, 0, 6899, "host", 0, "cpu", "Acme 9000"}, {1, 0, 6900, "host", 1, "cpu", "Acme 9000"}}}}
	require.Equal(t, `# goccl 0.1.0, go1.25 linux/amd64
# ranks: 2  processes: 2 (started here)  hosts: 1  engine: cpu  transport: shared memory
# CPU: Acme 9000
# Collective test starting: all_reduce_perf
# nThread 1 nGpus 1 minBytes 8 maxBytes 67108864 step: 2(factor) warmup iters: 1 iters: 20 agg iters: 1 validation: 1 graph: 0
#
# Using devices
#  Rank  0 Group  0 Pid   6899 on       host device  0 [cpu] Acme 9000
#  Rank  1 Group  0 Pid   6900 on       host device  1 [cpu] Acme 9000
`, f.Header(&o))

	o.Factor, o.Step = 0, 1024
	require.Contains(t, f.Header(&o), " step: 1024(bytes) ")

	o, err := option.Parse(strings.Fields("-hints max-ctas=8,net=IB"))
	require.NoError(t, err)
	for _, verbose := range []bool{false, true} {
		o.Verbose = verbose
		require.Equal(t, verbose, strings.Contains(f.Header(&o), "\n# Hints: max-ctas=8,net=IB\n# Collective"))
	}

	// What -sizes and -plan measure, and not what -b and -e would have been.
	f.Config.GroupRanks = 2
	for args, want := range map[string]string{
		"-sizes 1M,8,64":           " minBytes 8 maxBytes 1048576 step: 0(list) ",
		"-plan tp -model llama-7b": " minBytes 33554432 maxBytes 33554432 step: 0(tp) ",
	} {
		o, err := option.Parse(strings.Fields(args))
		require.NoError(t, err)
		require.Contains(t, f.Header(&o), want)
	}
}
