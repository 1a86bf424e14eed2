package nvml

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTable(t *testing.T) {
	top := &Topology{
		GPUs: []GPU{
			{Name: "NVIDIA H200", PCI: "0000:1b:00.0", NUMA: 0},
			{Name: "NVIDIA H200", PCI: "0000:9c:00.0", NUMA: -1},
		},
		Links: [][]Link{{"X", "NV18"}, {"NV18", "X"}},
	}
	require.Equal(t, ""+
		"      GPU0  GPU1  NUMA  PCI           GPU\n"+
		"GPU0  X     NV18  0     0000:1b:00.0  NVIDIA H200\n"+
		"GPU1  NV18  X     -     0000:9c:00.0  NVIDIA H200\n", top.String())
}
