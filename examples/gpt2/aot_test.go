//go:build xla && cgo && linux

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/train/fit"
	"github.com/goccl/goccl/xla"
)

// h100 is what XLA has to know of an H100 to compile for it: a GpuTargetConfigProto.
const h100 = `
gpu_device_info {
  threads_per_block_limit: 1024
  threads_per_warp: 32
  shared_memory_per_block: 49152
  shared_memory_per_core: 233472
  threads_per_core_limit: 2048
  core_count: 132
  fpus_per_core: 128
  block_dim_limit_x: 2147483647
  block_dim_limit_y: 65535
  block_dim_limit_z: 65535
  memory_bandwidth: 3352320000000
  l2_cache_size: 52428800
  clock_rate_ghz: 1.98
  device_memory_size: 84942979072
  shared_memory_per_block_optin: 232448
  cuda_compute_capability { major: 9 }
  registers_per_core_limit: 65536
  registers_per_block_limit: 65536
}
platform_name: "CUDA"
dnn_version_info { major: 9 minor: 10 patch: 0 }
device_description_str: "NVIDIA H100 80GB HBM3"
`

// The step of GPT-2 124M, compiled for an H100 that is not there: its products are products, its attention is cuDNN's, and it fits in the
// memory that it took on one. GPT2_TEST_CUDA is a directory of test/vendor/pjrt/fetch.sh cuda13-0.11.2; `make xla-h100` sets it.
func TestCompiledForH100(t *testing.T) {
	site := os.Getenv("GPT2_TEST_CUDA")
	if site == "" {
		t.Skip("hardware: GPT2_TEST_CUDA is not set: 700 MB of jax's plugin for CUDA (make xla-h100)")
	}
	p, err := xla.Open(filepath.Join(site, "site/jax_plugins/xla_cuda13/xla_cuda_plugin.so"))
	require.NoError(t, err)
	c, err := parse([]string{"-preset", "gpt2", "-bf16", "-rows", "8", "-np", "1"}, os.Stdout)
	require.NoError(t, err)
	text, err := fit.Text(c.network(), c.training())
	require.NoError(t, err)
	dump := t.TempDir()
	s, err := p.CompileFor("cuda", h100, text, xla.Flags{"xla_gpu_enable_triton_gemm": false, "xla_gpu_autotune_level": 0, "xla_dump_to": dump,
		"xla_gpu_cuda_data_dir": filepath.Join(site, "site/nvidia/cu13")})
	require.NoError(t, err)
	files, err := filepath.Glob(filepath.Join(dump, "*after_optimizations.txt"))
	require.NoError(t, err)
	require.Len(t, files, 1)
	optimized, err := os.ReadFile(files[0])
	require.NoError(t, err)
	count := func(what string) int { return len(regexp.MustCompile(what).FindAll(optimized, -1)) }
	products, attention := count(`custom_call_target="__cublas\$lt\$matmul`), count(`custom_call_target="__cudnn\$fmha`)
	peak := float64(s.Peak) / (1 << 30)
	t.Logf("%d products, %d attention calls, %d fusions; peak %.2f GiB", products, attention, count(` fusion\(`), peak)
	require.GreaterOrEqual(t, products, 147)
	require.Equal(t, 24, attention)
	require.LessOrEqual(t, peak, 5.7)
}
