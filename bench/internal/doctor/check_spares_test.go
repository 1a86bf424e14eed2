package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The doctor says which ranks wait, and where a spare would change the shape of the hosts.
func TestSpares(t *testing.T) {
	for _, tc := range []struct {
		name, value string
		hosts       [4]string
		want        *Finding
	}{
		{"none", "", [4]string{"h1", "h1", "h2", "h2"}, nil},
		{"0", "0", [4]string{"h1", "h1", "h2", "h2"}, nil},
		{"as many as ranks", "4", [4]string{"h1", "h1", "h2", "h2"}, &Finding{"spares", failure, "GOCCL_SPARES=4, and the job has 4 ranks: at least one of them works", ""}},
		{"one host", "1", [4]string{"h1", "h1", "h1", "h1"}, &Finding{"spares", ok, "the last 1 of 4 ranks wait, on h1", ""}},
		{"in turn", "2", [4]string{"h1", "h2", "h1", "h2"}, &Finding{"spares", ok, "the last 2 of 4 ranks wait, on h1, h2", ""}},
		{"in blocks", "2", [4]string{"h1", "h1", "h2", "h2"}, &Finding{"spares", warning,
			"the last 2 of 4 ranks wait, on h2, and none on h1: a rank lost there is replaced on another host, and sums may differ in their last bits", ""}},
		{"a host each", "2", [4]string{"h1", "h2", "h3", "h4"}, &Finding{"spares", ok, "the last 2 of 4 ranks wait, on h3, h4", ""}},
	} {
		e := healthy()
		for i, f := range e.ranks {
			f.Host = tc.hosts[i]
			if tc.value != "" {
				f.Env = append(f.Env, "GOCCL_SPARES="+tc.value)
			}
		}
		e.spares()
		if tc.want == nil {
			require.Empty(t, e.found, tc.name)
			continue
		}
		require.Len(t, e.found, 1, tc.name)
		require.Equal(t, tc.want.Level != ok, e.found[0].Remedy != "", tc.name)
		e.found[0].Remedy = ""
		require.Equal(t, *tc.want, e.found[0], tc.name)
	}
}
