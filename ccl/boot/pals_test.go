package boot

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseAPInfo(t *testing.T) {
	good := makeAPInfo([]string{"x1", "x2"}, []int{1, 1, 0})
	a, err := parseAPInfo(good)
	require.NoError(t, err)
	require.Equal(t, &apinfo{hosts: []string{"x1", "x2"}, nodes: []int{1, 1, 0}}, a)

	for _, tc := range []struct {
		name  string
		spoil func(b []byte) []byte
	}{
		{"empty", func([]byte) []byte { return nil }},
		{"short", func(b []byte) []byte { return b[:apHeader-1] }},
		{"cut off", func(b []byte) []byte { return b[:len(b)-1] }},
		{"no ranks", func(b []byte) []byte { binary.NativeEndian.PutUint32(b[apRanks:], 0); return b }},
		{"too many ranks", func(b []byte) []byte { binary.NativeEndian.PutUint32(b[apRanks:], 1<<31); return b }},
		{"entries of nothing", func(b []byte) []byte { binary.NativeEndian.PutUint64(b[apNodeSize:], 0); return b }},
		{"an overflow", func(b []byte) []byte { binary.NativeEndian.PutUint64(b[apNodeSize:], 1<<63); return b }},
		{"a table behind the end", func(b []byte) []byte { binary.NativeEndian.PutUint64(b[apNodeAt:], 1<<62); return b }},
		{"a rank nowhere", func(b []byte) []byte { binary.NativeEndian.PutUint32(b[160+apRankNode:], 2); return b }},
		{"a rank below", func(b []byte) []byte { binary.NativeEndian.PutUint32(b[160+apRankNode:], 1<<31); return b }},
		{"a nameless host", func(b []byte) []byte { b[160+3*12+apNodeName] = 0; return b }},
		{"a name that is none", func(b []byte) []byte { b[160+3*12+apNodeName] = '\n'; return b }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := parseAPInfo(tc.spoil(append([]byte(nil), good...)))
			require.ErrorIs(t, err, Argument)
		})
	}
}

func TestPALSHosts(t *testing.T) {
	env := map[string]string{"PALS_APINFO": "/a", "PBS_NODEFILE": "/n"}
	nodefile := []byte("x1.hsn.test\nx2.hsn.test\n")
	for _, tc := range []struct {
		name  string
		files map[string][]byte
		hosts []string
		where string
	}{
		{"both", map[string][]byte{"/a": makeAPInfo([]string{"x1", "x2"}, []int{1, 0}), "/n": nodefile}, []string{"x2", "x2.hsn.test"}, "x1 (PALS)"},
		{"the application's", map[string][]byte{"/a": makeAPInfo([]string{"x1", "x2"}, []int{0, 1})}, []string{"x1"}, "x2 (PALS)"},
		{"the job's", map[string][]byte{"/n": nodefile}, []string{"x1.hsn.test"}, ""},
		{"none", nil, nil, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			hosts, where := palsHosts(varsOf(env, tc.files))
			require.ElementsMatch(t, tc.hosts, hosts)
			if tc.where == "" {
				require.Nil(t, where)
				return
			}
			require.Equal(t, tc.where, where(1))
			require.Equal(t, "", where(2))
		})
	}
}

func FuzzAPInfo(f *testing.F) {
	f.Add(makeAPInfo([]string{"x1", "x2"}, []int{1, 1, 0}))
	f.Add(makeAPInfo([]string{"x1"}, []int{0}))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := parseAPInfo(b)
		if err != nil {
			return
		}
		require.NotEmpty(t, a.hosts)
		require.NotEmpty(t, a.nodes)
		for _, n := range a.nodes {
			require.Less(t, n, len(a.hosts))
		}
	})
}
