package profile

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRanks(t *testing.T) {
	for _, tc := range []struct {
		profile *Profile
		env     []string
		want    int
	}{
		{&aurora, nil, 12},
		{&aurora, []string{"ZE_FLAT_DEVICE_HIERARCHY=FLAT"}, 12},
		{&aurora, []string{"ZE_FLAT_DEVICE_HIERARCHY=COMBINED"}, 12},
		{&aurora, []string{"ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE"}, 6},
		{&aurora, []string{"ZE_FLAT_DEVICE_HIERARCHY=composite"}, 6},
		{&aurora, []string{"ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE", "ZE_AFFINITY_MASK=0.0,0.1,1.0"}, 3},
		{&polaris, nil, 4},
		{&frontier, nil, 8},
		{&perlmutter, []string{"SLURM_GPUS_ON_NODE=4"}, 4},
		{&perlmutter, nil, 0},
	} {
		n, _ := tc.profile.Ranks(env(tc.env...))
		require.Equal(t, tc.want, n, "%s %v", tc.profile.Name, tc.env)
	}
}

func TestFlags(t *testing.T) {
	for _, tc := range []struct {
		profile  *Profile
		launcher string
		perNode  int
		env      []string
		want     string
	}{
		{&aurora, "pals", 12, nil, "--cpu-bind list:1-8:9-16:17-24:25-32:33-40:41-48:53-60:61-68:69-76:77-84:85-92:93-100"},
		{&aurora, "pals", 6, nil, "--cpu-bind list:1-8,9-16:17-24,25-32:33-40,41-48:53-60,61-68:69-76,77-84:85-92,93-100"},
		{&aurora, "pals", 1, nil, "--cpu-bind list:" + strings.Join(auroraCores, ",")},
		{&aurora, "pals", 52, nil, "--cpu-bind depth -d 2"},
		{&aurora, "hydra", 12, nil, ""},
		{&polaris, "pals", 4, nil, "--cpu-bind list:24-31:16-23:8-15:0-7"},
		{&polaris, "pals", 8, nil, "--cpu-bind depth -d 4"},
		{&polaris, "pals", 64, nil, "--cpu-bind depth -d 1"},
		{&frontier, "srun", 8, nil, "--network=disable_rdzv_get --cpus-per-task=7 --gpus-per-task=1 --gpu-bind=closest"},
		{&frontier, "srun", 56, nil, "--network=disable_rdzv_get --cpus-per-task=1"},
		{&frontier, "hydra", 4, nil, ""},
		{&perlmutter, "srun", 4, []string{"SLURM_GPUS=4"}, "--cpu-bind=cores --gpus-per-node=4"},
		{&perlmutter, "srun", 4, nil, "--cpu-bind=cores"},
		{&perlmutter, "hydra", 4, nil, ""},
	} {
		flags, reason := tc.profile.Flags(env(tc.env...), tc.launcher, tc.perNode)
		require.Equal(t, tc.want, strings.Join(flags, " "))
		require.Equal(t, len(flags) == 0, reason == "")
	}
}
