package history_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/train/history"
)

// A run is killed while it writes a line, wherever in the line, and the next run appends to the file: no step of it is lost.
func TestReadOfAResumedFile(t *testing.T) {
	line := func(step int, loss float64) string {
		return fmt.Sprintf(`{"step":%d,"loss":{"mean":%v,"min":%v,"max":%v,"std":0}}`+"\n", step, loss, loss, loss)
	}
	torn := line(3, 9)
	for cut := 1; cut < len(torn); cut++ {
		h, err := history.Read(strings.NewReader(line(1, 5) + line(2, 4) + torn[:cut] + line(3, 3) + line(4, 2)))
		require.NoError(t, err, torn[:cut])
		var steps []int
		var means []float64
		for s, x := range h.Series("loss") {
			steps, means = append(steps, s), append(means, x.Mean)
		}
		require.Equal(t, []int{1, 2, 3, 4}, steps, torn[:cut])
		require.Equal(t, []float64{5, 4, 3, 2}, means, torn[:cut])
	}
	_, err := history.Read(strings.NewReader(strings.TrimSuffix(line(1, 5), "\n") + "} garbage\n"))
	require.Error(t, err)
}

// What a file has of a run that went on from a checkpoint replaces the steps from there; a step that goes back for itself alone,
// as where an epoch is logged as a step, loses nothing.
func TestReadWhatGoesBack(t *testing.T) {
	for _, tc := range []struct{ file, want []int }{
		{[]int{1, 2, 3, 4}, []int{1, 2, 3, 4}},
		{[]int{1, 2, 3, 4, 3, 4, 5}, []int{1, 2, 3, 4, 5}},
		{[]int{10, 20, 30, 40, 20, 30}, []int{10, 20, 30}}, // and was killed again
		{[]int{10, 20, 30, 40, 15}, []int{10, 15}},
		{[]int{100, 200, 300, 1, 400, 500, 2, 600}, []int{1, 2, 100, 200, 300, 400, 500, 600}},
		{[]int{10, 20, 30, 20, 30, 40, 20, 30}, []int{10, 20, 30}},
	} {
		text := ""
		for i, step := range tc.file {
			text += fmt.Sprintf(`{"step":%d,"loss":{"mean":%d,"min":0,"max":0,"std":0}}`+"\n", step, i)
		}
		h, err := history.Read(strings.NewReader(text))
		require.NoError(t, err)
		var steps []int
		for s, x := range h.Series("loss") {
			steps = append(steps, s)
			require.Equal(t, s, tc.file[int(x.Mean)])
		}
		require.Equal(t, tc.want, steps, "%v", tc.file)
	}
}
