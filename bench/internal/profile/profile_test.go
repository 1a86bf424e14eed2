package profile

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// env is an environment of NAME=VALUE words.
func env(words ...string) func(string) string {
	return func(name string) string {
		for _, w := range words {
			if v, ok := strings.CutPrefix(w, name+"="); ok {
				return v
			}
		}
		return ""
	}
}

func TestOf(t *testing.T) {
	for _, tc := range []struct {
		name  string
		env   []string
		hosts []string
		want  string
	}{
		{"nothing", nil, nil, "generic"},
		{"a laptop", nil, []string{"laptop"}, "generic"},
		{"full names", nil, []string{"x4101c0s0b0n0.hsn.cm.aurora.alcf.anl.gov"}, "aurora"},
		{"management names", nil, []string{"x4101c0s0b0n0.hostmgmt2101.cm.aurora.alcf.anl.gov"}, "aurora"},
		{"short names under PBS", []string{"PBS_JOBID=1"}, []string{"x4101c0s0b0n0"}, "aurora"},
		{"short names elsewhere", nil, []string{"x4101c0s0b0n0"}, "generic"},
		{"Polaris' nodes", []string{"PBS_JOBID=1"}, []string{"x3001c0s1b0n0"}, "polaris"},
		{"Polaris' domain", nil, []string{"x3001c0s1b0n0.hsn.cm.polaris.alcf.anl.gov"}, "polaris"},
		{"submitted on Aurora", []string{"PBS_O_HOST=aurora-uan-0001"}, []string{"h1"}, "aurora"},
		{"Frontier", []string{"SLURM_CLUSTER_NAME=frontier"}, nil, "frontier"},
		{"Frontier's nodes", nil, []string{"frontier00012"}, "frontier"},
		{"Perlmutter", []string{"NERSC_HOST=perlmutter"}, []string{"nid001234"}, "perlmutter"},
		{"any Slurm", []string{"SLURM_CLUSTER_NAME=lab"}, []string{"nid001234"}, "generic"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.want, Of(env(tc.env...), tc.hosts).Name)
		})
	}
}

func TestNamed(t *testing.T) {
	for _, name := range Names() {
		p, err := Named(name)
		require.NoError(t, err)
		require.Equal(t, name, p.Name)
	}
	_, err := Named("polari")
	require.EqualError(t, err, "-profile polari: no such machine; did you mean polaris?")
	_, err = Named("elsewhere")
	require.EqualError(t, err, "-profile elsewhere: no such machine; there are aurora polaris frontier perlmutter generic none")
}

// What the user has set stays, and every setting has a reason.
func TestSettings(t *testing.T) {
	names := func(s []Setting) (n []string) {
		for _, one := range s {
			n = append(n, one.Name)
		}
		return n
	}
	require.Contains(t, names(aurora.Settings(env(), 2)), "CCL_ATL_TRANSPORT")
	require.NotContains(t, names(aurora.Settings(env("CCL_ATL_TRANSPORT=ofi"), 2)), "CCL_ATL_TRANSPORT")
	require.NotContains(t, names(aurora.Settings(env(), 1024)), "PALS_RPC_TIMEOUT")
	require.Contains(t, names(aurora.Settings(env(), 1025)), "PALS_RPC_TIMEOUT")
	require.NotContains(t, names(polaris.Settings(env(), 1)), "NCCL_NET")
	require.Contains(t, names(polaris.Settings(env(), 2)), "NCCL_NET")
	require.Empty(t, generic.Settings(env(), 99))
	for _, p := range profiles {
		for _, s := range p.Env {
			require.NotEmpty(t, s.Reason, "%s %s", p.Name, s.Name)
			require.NotEmpty(t, s.Value, "%s %s", p.Name, s.Name)
		}
	}
}

func TestPrepend(t *testing.T) {
	dir := t.TempDir()
	p := Profile{Env: []Setting{
		{Name: "LIBS", Value: dir, Prepend: true},
		{Name: "LIBS", Value: filepath.Join(dir, "gone"), Prepend: true},
	}}
	require.Equal(t, []Setting{{Name: "LIBS", Value: dir, Prepend: true}}, p.Settings(env(), 1))
	require.Equal(t, dir+":/lib", p.Settings(env("LIBS=/lib"), 1)[0].Value)
	require.Empty(t, p.Settings(env("LIBS=/lib:"+dir), 1))
	require.NoError(t, os.Remove(dir))
	require.Empty(t, p.Settings(env(), 1))
}
