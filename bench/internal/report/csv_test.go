package report

import (
	"bytes"
	"encoding/csv"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestCSV(t *testing.T) {
	f := sampleFile(2)
	var b bytes.Buffer
	require.NoError(t, f.WriteCSV(&b))
	lines, err := csv.NewReader(&b).ReadAll()
	require.NoError(t, err)
	require.Len(t, lines, 1+2*len(f.Results))
	require.Equal(t, columns, lines[0])
	at := func(line int, name string) string {
		for i, c := range columns {
			if c == name {
				return lines[line][i]
			}
		}
		return "no such column"
	}
	require.Equal(t, []string{"allreduce", "8", "out", "2", "2.0016", "0.5"},
		[]string{at(1, "op"), at(1, "size_bytes"), at(1, "place"), at(1, "nranks"), at(1, "time_us"), at(1, "skew_us")})
	require.Equal(t, "in", at(2, "place"))
	require.Empty(t, at(2, "i_p99_us"), "it was not measured")
}
