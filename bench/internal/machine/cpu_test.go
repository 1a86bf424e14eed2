package machine

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCPU(t *testing.T) {
	x86 := fake(t, map[string]string{"proc/cpuinfo": "processor\t: 0\nmodel name\t: Acme  9000 @ 3 GHz\nmodel name\t: other\n"})
	require.Equal(t, "Acme 9000 @ 3 GHz", CPU(x86))
	pi := fake(t, map[string]string{"proc/cpuinfo": "processor\t: 0\nBogoMIPS : 108\nModel : Raspberry Pi 5\n"})
	require.Equal(t, "Raspberry Pi 5", CPU(pi))
	t.Setenv("PROCESSOR_IDENTIFIER", "")
	require.Equal(t, runtime.GOARCH, CPU(t.TempDir()))
}

func TestMemory(t *testing.T) {
	require.Equal(t, 16384<<10, Memory(fake(t, map[string]string{"proc/meminfo": "MemTotal:       16384 kB\nMemFree: 1 kB\n"})))
	require.Equal(t, 0, Memory(t.TempDir()))
}
