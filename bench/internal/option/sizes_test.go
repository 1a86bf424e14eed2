package option

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSizesList(t *testing.T) {
	o := parsed(t, []string{"-sizes", "8,1M,gpt2-85m", "-d", "half,float"})
	require.Equal(t, []int{8, 1 << 20, 99840, 1572864, 1536, 3538944, 1179648, 4718592}, o.Sizes(2))
	require.Equal(t, 9437184, o.Largest(2), "as floats")
	for in, want := range map[string]string{
		"8,gpt2-85n": `-sizes 8,gpt2-85n: "gpt2-85n": no such model; did you mean gpt2-85m? (models: gpt2-85m gpt2-xl llama-7b resnet50)`,
		"8,,9":       `-sizes 8,,9: "": a size is a number with an optional K, M or G, such as 64K (models: gpt2-85m gpt2-xl llama-7b resnet50)`,
	} {
		_, err := Parse([]string{"-sizes", in})
		require.EqualError(t, err, want)
	}
}

func TestLargestOfStep(t *testing.T) {
	require.Equal(t, 2*14158848, parsed(t, []string{"-plan", "ddp", "-d", "bf16"}).Largest(4))
}
