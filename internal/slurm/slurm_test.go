package slurm

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHosts(t *testing.T) {
	for _, tc := range []struct {
		list string
		want []string
	}{
		{"", nil},
		{"n1", []string{"n1"}},
		{"n[1-3,7],m2", []string{"n1", "n2", "n3", "n7", "m2"}},
		{"n[1-2]", []string{"n1", "n2"}},
		{"nid[008-011]", []string{"nid008", "nid009", "nid010", "nid011"}},
		{"r[1-2]n[1,3]-ib", []string{"r1n1-ib", "r1n3-ib", "r2n1-ib", "r2n3-ib"}},
		{"a,b,c.example.org", []string{"a", "b", "c.example.org"}},
		{"[1-2]", []string{"1", "2"}},
	} {
		got, err := Hosts(tc.list)
		require.NoError(t, err, tc.list)
		require.Equal(t, tc.want, got, tc.list)
	}
	for _, bad := range []string{
		",", "a,", ",a", "n[", "n]", "n[1", "n1]", "n[]", "n[a]", "n[3-1]", "n[1-]", "n[-1]", "n[[1]]", "n[1]]",
		"n[0-4294967295]", "n[0-131072]", "n[1-100000]m[1-100000]", "n[99999999999999999999]",
		strings.Repeat("n", 300) + "[1-2]", "n[" + strings.Repeat("0", 300) + "1-9]",
		strings.Repeat("n[1-131072],", 2) + "m",
	} {
		_, err := Hosts(bad)
		require.Error(t, err, bad)
	}
}

func TestOnNode(t *testing.T) {
	for _, tc := range []struct {
		list string
		node int
		want int
		ok   bool
	}{
		{"2(x2)", 0, 2, true}, {"2(x2)", 1, 2, true}, {"2(x2)", 2, 0, false},
		{"2,1", 0, 2, true}, {"2,1", 1, 1, true},
		{"4(x3),1,2(x2)", 3, 1, true}, {"4(x3),1,2(x2)", 5, 2, true},
		{"", 0, 0, false}, {"2(x2", 0, 0, false}, {"2(x)", 0, 0, false}, {"x", 0, 0, false}, {"2(x0)", 0, 0, false}, {"2", -1, 0, false},
	} {
		n, ok := OnNode(tc.list, tc.node)
		require.Equal(t, tc.ok, ok, tc.list)
		require.Equal(t, tc.want, n, tc.list)
	}
}

func FuzzHosts(f *testing.F) {
	for _, s := range []string{"n[1-3,7],m2", "nid[008-011]", "r[1-2]n[1,3]-ib", "n[", "n[1-"} {
		f.Add(s, 1)
	}
	f.Fuzz(func(t *testing.T, list string, node int) {
		hosts, err := Hosts(list)
		if err == nil {
			require.LessOrEqual(t, len(hosts), maxHosts)
			require.Equal(t, list == "", len(hosts) == 0)
			for _, h := range hosts {
				require.NotContains(t, h, "[")
				require.NotEmpty(t, h)
			}
		}
		if n, ok := OnNode(list, node); ok {
			require.GreaterOrEqual(t, n, 0)
		}
	})
}
