package model

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// The buckets of gpt2-85m are those that PyTorch makes of it.
func TestBuckets(t *testing.T) {
	m := Named("gpt2-85m")
	mib := func(elem int) (sizes []float64) {
		for _, n := range m.Buckets(elem) {
			sizes = append(sizes, float64(n*elem)/(1<<20))
		}
		return sizes
	}
	fp32 := mib(4)
	require.Len(t, fp32, 13)
	require.InDelta(t, 9.0, fp32[0], 0.05)
	for _, b := range fp32[1:12] {
		require.InDelta(t, 27.0, b, 0.05)
	}
	require.InDelta(t, 21.2, fp32[12], 0.05)
	bf16 := mib(2)
	require.Len(t, bf16, 7)
	require.InDelta(t, 4.5, bf16[0], 0.05)
	require.InDelta(t, 24.1, bf16[6], 0.05)
}

func TestUnits(t *testing.T) {
	m := Named("gpt2-85m")
	units := m.Units()
	require.Len(t, units, 14)
	require.Equal(t, 49920+786432, units[0])
	require.Equal(t, 7_079_424, units[1])
	require.Equal(t, 768, units[13])
	sum := 0
	for _, n := range Named("resnet50").Units() {
		sum += n
	}
	require.Equal(t, 25_557_032, sum)
}

func TestStep(t *testing.T) {
	const params, act = 85_790_208, 1024 * 768
	for _, tc := range []struct {
		scheme string
		calls  int
		volume map[string]int // elements by operation
	}{
		{"ddp", 13, map[string]int{"allreduce": params}},
		{"zero1", 26, map[string]int{"reducescatter": params, "allgather": params}},
		{"zero2", 26, map[string]int{"reducescatter": params, "allgather": params}},
		{"zero3", 42, map[string]int{"reducescatter": params, "allgather": 2 * params}},
		{"tp", 48, map[string]int{"allreduce": 48 * act}},
		{"pp", 16, map[string]int{"sendrecv": 16 * act}},
		{"ulysses", 96, map[string]int{"alltoall": 96 * act / 4}},
		{"ring", 72, map[string]int{"sendrecv": 3 * 36 * 2 * act / 4}},
	} {
		calls, err := Named("gpt2-85m").Step(tc.scheme, 4, 4)
		require.NoError(t, err)
		require.Len(t, calls, tc.calls, tc.scheme)
		volume := map[string]int{}
		for _, c := range calls {
			volume[c.Op] += c.Elements
		}
		require.Equal(t, tc.volume, volume, tc.scheme)
		require.NotEmpty(t, Explain(tc.scheme))
	}
	require.Len(t, SchemeNames(), 8)
	_, err := Named("resnet50").Step("tp", 4, 4)
	require.EqualError(t, err, "resnet50 has no transformer layers; the schemes for it are ddp, zero1, zero2 and zero3")
	_, err = Named("resnet50").Step("tpp", 4, 4)
	require.Error(t, err)
}

// moved is the elements of a step's calls, each as often as its operation counts.
func moved(t *testing.T, m *Model, scheme string, ranks int, counts map[string]float64) (elements float64) {
	calls, err := m.Step(scheme, ranks, 2)
	require.NoError(t, err)
	for _, c := range calls {
		elements += float64(c.Elements) * counts[c.Op]
	}
	return elements
}

// What a rank sends in a step beside what the papers say, of F parameters on P ranks, with algorithms that send no element twice:
//
//   - ddp: 2F, a reduce-scatter and an all-gather; zero1 and zero2 the same; zero3 3F (Rajbhandari et al. 2020,
//     arXiv:1910.02054, sections 7.1 and 7.2, which leave out the factor (P-1)/P of each);
//   - pp: Nh for each micro batch between two stages, forward, and as much backward (Narayanan et al. 2021, arXiv:2104.04473,
//     section 3.2).
func TestPapersOfSteps(t *testing.T) {
	for _, name := range []string{"gpt2-85m", "gpt2-xl", "llama-7b", "resnet50"} {
		m := Named(name)
		for _, p := range []float64{2, 3, 8, 64} {
			sent := map[string]float64{"allreduce": 2 * (p - 1) / p, "reducescatter": (p - 1) / p, "allgather": (p - 1) / p, "sendrecv": 1}
			for scheme, times := range map[string]float64{"ddp": 2, "zero1": 2, "zero2": 2, "zero3": 3} {
				require.InEpsilon(t, times*float64(m.Parameters())*(p-1)/p, moved(t, m, scheme, int(p), sent), 1e-12, "%s of %s on %v ranks", scheme, name, p)
			}
			if m.Layers > 0 {
				require.Equal(t, float64(2*MicroBatches*m.Sequence*m.Hidden), moved(t, m, "pp", int(p), sent))
			}
		}
	}
}

// Bytes of a step beside what the papers say of a layer, forward, that a rank moves of N tokens with h elements on P ranks:
//
//   - ulysses: 3Nh/P for queries, keys and values, and Nh/P for the output (Jacobs et al. 2023, arXiv:2309.14509);
//   - ring: a block of N/P tokens, of its keys and its values, to the next rank for each other rank (Liu et al. 2023,
//     arXiv:2310.01889), so 2Nh/P and P-1 times;
//   - tp: 4Nh, two all-gathers and two reduce-scatters, which are two all-reduces (Korthikanti et al. 2022,
//     arXiv:2205.05198; Jacobs et al.).
func TestPapers(t *testing.T) {
	for _, name := range []string{"gpt2-85m", "gpt2-xl", "llama-7b"} {
		m := Named(name)
		nh := float64(m.Sequence) * float64(m.Hidden)
		for _, p := range []int{2, 4, 8, 16, 64} {
			layer := func(scheme string) float64 { // an all-reduce is a reduce-scatter and an all-gather, of the whole vector each
				return moved(t, m, scheme, p, map[string]float64{"allreduce": 2, "alltoall": 1, "sendrecv": 1}) / float64(m.Layers)
			}
			require.Equal(t, 2*4*nh/float64(p), layer("ulysses"), "forward, and as much backward")
			require.Equal(t, 2*4*nh, layer("tp"), "forward, and as much backward")
			forward := 2 * nh / float64(p) * float64(p-1)
			require.Equal(t, 3*forward, layer("ring"), "forward, and backward with the gradients")
			if p > 2 {
				require.Less(t, layer("ulysses"), layer("ring"))
			}
		}
	}
}
