package mesh_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/train/mesh"
)

func TestParse(t *testing.T) {
	for s, want := range map[string][]mesh.Dim{
		"dp=2,pp=4,tp=8": {{"dp", 2}, {"pp", 4}, {"tp", 8}},
		"tp=8":           {{"tp", 8}},
		"dp,tp=8":        {{"dp", 0}, {"tp", 8}},
		" dp = 2 , tp":   {{"dp", 2}, {"tp", 0}},
	} {
		got, err := mesh.Parse(s)
		require.NoError(t, err)
		require.Equal(t, want, got, s)
	}
	for s, text := range map[string]string{
		"":        `mesh: "": a dimension is NAME=SIZE or NAME, with commas between`,
		"dp,,tp":  `mesh: "dp,,tp": a dimension is NAME=SIZE or NAME, with commas between`,
		"=2":      `mesh: "=2": a dimension is NAME=SIZE or NAME, with commas between`,
		"dp=0":    `mesh: "dp=0": the size of dp is a number from 1 on; without "=" it takes what is left over`,
		"dp=":     `mesh: "dp=": the size of dp is a number from 1 on; without "=" it takes what is left over`,
		"dp=x":    `mesh: "dp=x": the size of dp is a number from 1 on; without "=" it takes what is left over`,
		"dp=-1":   `mesh: "dp=-1": the size of dp is a number from 1 on; without "=" it takes what is left over`,
		"dp=2=3":  `mesh: "dp=2=3": the size of dp is a number from 1 on; without "=" it takes what is left over`,
		"dp=1e99": `mesh: "dp=1e99": the size of dp is a number from 1 on; without "=" it takes what is left over`,
	} {
		_, err := mesh.Parse(s)
		require.EqualError(t, err, text)
	}
}

func FuzzParse(f *testing.F) {
	f.Add("dp=2,pp=4,tp=8")
	f.Add("dp,tp=8")
	f.Fuzz(func(t *testing.T, s string) {
		dims, err := mesh.Parse(s)
		if err != nil {
			return
		}
		require.NotEmpty(t, dims)
		for _, d := range dims {
			require.NotEmpty(t, d.Name)
			require.GreaterOrEqual(t, d.Size, 0)
		}
	})
}
