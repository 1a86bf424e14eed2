package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The sums are the published numbers of parameters.
func TestParameters(t *testing.T) {
	for _, tc := range []struct {
		name             string
		tensors, numbers int
	}{
		{"gpt2-85m", 75, 85_790_208},
		{"gpt2-xl", 580, 1_557_611_200},
		{"llama-7b", 291, 6_738_415_616},
		{"resnet50", 161, 25_557_032},
	} {
		m := Named(tc.name)
		require.NotNil(t, m, tc.name)
		require.Len(t, m.Tensors, tc.tensors, tc.name)
		require.Equal(t, tc.numbers, m.Parameters(), tc.name)
		require.NotEmpty(t, m.Source)
	}
	require.Nil(t, Named("bert"))
	require.Len(t, Names(), 4)
}

func TestSizes(t *testing.T) {
	require.Equal(t, []int{49920, 786432, 768, 1769472, 589824, 2359296}, Named("gpt2-85m").Sizes())
}
