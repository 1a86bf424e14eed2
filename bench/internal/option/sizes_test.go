package option

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSizesList(t *testing.T) {
	o := parsed(t, []string{"-sizes", "8,1M,gpt2-85m", "-d", "half,float"})
	require.Equal(t, []int{8, 1 << 20, 99840, 1572864, 1536, 3538944, 1179648, 4718592}, o.Sizes(2))
	require.Equal(t, 9437184, o.Largest(2), "as floats")
}

func TestLargestOfStep(t *testing.T) {
	require.Equal(t, 2*14158848, parsed(t, []string{"-plan", "ddp", "-d", "bf16"}).Largest(4))
}
