package report

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// validate checks a file against the schema that docs has.
func validate(t *testing.T, f *File) error {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile("../../../docs/bench.schema.json")
	require.NoError(t, err)
	var b bytes.Buffer
	require.NoError(t, f.JSON(&b))
	v, err := jsonschema.UnmarshalJSON(&b)
	require.NoError(t, err)
	return schema.Validate(v)
}

func TestSchema(t *testing.T) {
	f := sampleFile(2)
	f.Step = &Step{Scheme: "ddp", Model: "gpt2-85m", Iter: NewPerIter([]float64{1}, nil, 0, 0)}
	f.Results[0].Overlap = NewOverlap(1, 2, 2.5)
	f.Results[0].Time = "2026-01-02 03:04:05"
	f.Results[1].Cycle, f.Results[1].OutOfPlace.BusBW, f.Results[1].OutOfPlace.Wrong = 3, nil, nil
	require.NoError(t, validate(t, f))

	f.Results[0].Redop = ""
	f.Results[0].Size = -1
	require.Error(t, validate(t, f))
}

// What is written can be read, and what is not ours is refused.
func TestParse(t *testing.T) {
	f := sampleFile(2)
	var b bytes.Buffer
	require.NoError(t, f.JSON(&b))
	got, err := Parse(b.Bytes())
	require.NoError(t, err)
	require.Equal(t, f.Results, got.Results)
	require.Equal(t, f.Config, got.Config)
	for _, text := range []string{"", "[]", "{}", `{"version":1}`, `{"version":3,"results":7}`} {
		_, err := Parse([]byte(text))
		require.ErrorContains(t, err, "it is not a file that -J writes")
	}
	_, _, err = Load("/no/such")
	require.EqualError(t, err, "/no/such: it cannot be read: no such file or directory")
}

func FuzzParse(f *testing.F) {
	sample := sampleFile(1)
	sample.Results = sample.Results[:2] // a curve: what more rows add is time
	var b, seed bytes.Buffer
	require.NoError(f, sample.JSON(&b))
	require.NoError(f, json.Compact(&seed, b.Bytes()))
	f.Add(seed.Bytes())
	f.Add([]byte(`{"version":3,"results":[{}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		f, err := Parse(b)
		if err != nil {
			return
		}
		require.NoError(t, f.HTML(io.Discard))
		require.NoError(t, f.WriteCSV(io.Discard))
	})
}
