package device

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// sources are the kernels, and what is made of them.
var sources = []string{"kernels", "../../gpu/testdata/kernels"}

// The PTX is made from the source as it is, for what we say that it is for, and rounds where the source does.
func TestPTX(t *testing.T) {
	for _, name := range sources {
		source, err := os.ReadFile(name + ".cu")
		require.NoError(t, err)
		text, err := os.ReadFile(name + ".ptx")
		require.NoError(t, err)
		sum := sha256.Sum256(source)
		require.Contains(t, string(text), "\n// kernels.cu: sha256 "+hex.EncodeToString(sum[:])+"\n", "%s.cu has changed: make kernels", name)
		require.Contains(t, string(text), "\n.version 6.0\n.target sm_70\n.address_size 64\n")
		for _, fused := range []string{"fma", ".approx", ".ftz", "div.full", "mad.f", "mad.rn"} {
			require.NotContains(t, string(text), fused, name)
		}
		names := regexp.MustCompile(`(?m)^(?:KERNEL\d+|ZERO|CONVERT|ADD|BY|BY_BF16|SQUARES|ADAMW)\((\w+),`).FindAllStringSubmatch(string(source), -1)
		require.Equal(t, strings.Count(string(text), ".visible .entry "), countNames(names), name)
		for _, n := range names {
			if n[1] != "name" {
				require.Contains(t, string(text), ".visible .entry "+n[1]+"(", name)
			}
		}
	}
}

// countNames leaves out the macros' own.
func countNames(list [][]string) (n int) {
	for _, x := range list {
		if x[1] != "name" {
			n++
		}
	}
	return n
}

// What launches the kernels knows their sizes.
func TestSizes(t *testing.T) {
	source, err := os.ReadFile("kernels.cu")
	require.NoError(t, err)
	for want, re := range map[int]string{threads: `THREADS = (\d+)`, each: `EACH = (\d+)`, lanes: `LANES = 1 << (\d+)`} {
		found := regexp.MustCompile(re).FindSubmatch(source)
		require.NotNil(t, found, re)
		got, err := strconv.Atoi(string(found[1]))
		require.NoError(t, err)
		if want == lanes {
			got = 1 << got
		}
		require.Equal(t, want, got, re)
	}
}

// The PTX is what NVRTC makes of the source. DEVICE_TEST_NVRTC is the directory of ptx/fetch.sh.
func TestCompiled(t *testing.T) {
	dir := os.Getenv("DEVICE_TEST_NVRTC")
	if dir == "" {
		t.Skip("hardware: DEVICE_TEST_NVRTC is not set: 130 MB of NVRTC and ptxas (make kernels-check)")
	}
	args := []string{dir, "-check"}
	for _, name := range sources {
		args = append(args, name+".cu")
	}
	out, err := exec.CommandContext(t.Context(), "ptx/compile.py", args...).CombinedOutput()
	require.NoError(t, err, string(out))
}
