package profile

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSlingshotRanks(t *testing.T) {
	for _, tc := range []struct {
		profile *Profile
		env     []string
		want    int
	}{
		{&frontier, nil, 8},
		{&perlmutter, []string{"SLURM_GPUS_ON_NODE=4"}, 4},
		{&perlmutter, nil, 0},
	} {
		n, _ := tc.profile.Ranks(env(tc.env...))
		require.Equal(t, tc.want, n, "%s %v", tc.profile.Name, tc.env)
	}
}

func TestSlingshotFlags(t *testing.T) {
	for _, tc := range []struct {
		profile  *Profile
		launcher string
		perNode  int
		env      []string
		want     string
	}{
		{&frontier, "srun", 8, nil, "--network=disable_rdzv_get --cpus-per-task=7 --gpus-per-task=1 --gpu-bind=closest"},
		{&frontier, "srun", 56, nil, "--network=disable_rdzv_get --cpus-per-task=1"},
		{&perlmutter, "srun", 4, []string{"SLURM_GPUS=4"}, "--cpu-bind=cores --gpus-per-node=4"},
		{&perlmutter, "srun", 4, nil, "--cpu-bind=cores"},
	} {
		flags, reason := tc.profile.Flags(env(tc.env...), tc.launcher, tc.perNode)
		require.Equal(t, tc.want, strings.Join(flags, " "))
		require.NotEmpty(t, reason)
	}
	for _, p := range []*Profile{&frontier, &perlmutter} {
		flags, _ := p.Flags(env(), "hydra", 4)
		require.Empty(t, flags)
	}
}
