package history_test

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/train/history"
	"github.com/goccl/goccl/train/history/events"
)

// A metric that few steps have, as a validation loss, is in all outputs, and a table has its cells empty elsewhere.
func TestCSV(t *testing.T) {
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		var lines, ev bytes.Buffer
		h := newHistory(t, c, &history.Options{JSON: &lines, Events: &ev})
		for step := 1; step <= 6; step++ {
			m := []history.Metric{{"loss", 3/float64(step) + float64(c.Rank())}}
			if step%3 == 0 {
				m = append(m, history.Metric{"validation", math.Inf(1)})
			}
			require.NoError(t, h.Log(t.Context(), step, m...))
		}
		h.Rewind(5)
		require.NoError(t, h.Log(t.Context(), 6, history.Metric{"loss", math.NaN()}))
		if c.Rank() != 0 {
			require.Zero(t, ev.Len())
			return
		}
		var table bytes.Buffer
		require.NoError(t, h.CSV(&table))
		rows, err := csv.NewReader(&table).ReadAll()
		require.NoError(t, err)
		require.Equal(t, strings.Split("step,loss,loss.min,loss.max,loss.std,validation,validation.min,validation.max,validation.std", ","), rows[0])
		require.Len(t, rows, 7)
		_, stats := collect(h, "loss")
		for i, row := range rows[1:] {
			require.Equal(t, strconv.Itoa(i+1), row[0])
			for k, want := range []float64{stats[i].Mean, stats[i].Min, stats[i].Max, stats[i].Std} {
				got, err := strconv.ParseFloat(row[1+k], 64)
				require.NoError(t, err)
				require.Equal(t, fmt.Sprint(want), fmt.Sprint(got))
			}
			want := []string{"", "", "", ""}
			if i+1 == 3 {
				want = []string{"Inf", "Inf", "Inf", "0"}
			}
			require.Equal(t, want, row[5:])
		}
		table.Reset()
		require.NoError(t, h.CSV(&table, "validation"))
		require.Equal(t, "step,validation,validation.min,validation.max,validation.std\n3,Inf,Inf,Inf,0\n", table.String())
		require.EqualError(t, h.CSV(&table, "x"), `history: CSV: no such metric: "x"; there are ["loss" "validation"]`)
		require.ErrorContains(t, h.CSV(&full{}), "history: CSV: no space left")
		require.Contains(t, lines.String(), `"validation"`)
		// TensorBoard's reader has its test in package events: here are the tags, and the restart at step 6.
		for _, tag := range []string{"loss", "loss/min", "loss/max", "validation", "validation/min"} {
			require.Contains(t, ev.String(), "\n"+string(rune(len(tag)))+tag)
		}
		var restart bytes.Buffer
		require.NoError(t, events.New(&restart).Restart(time.Now(), 6))
		mark := restart.Bytes()[restart.Len()-4-6 : restart.Len()-4] // its step and status
		require.Equal(t, 1, bytes.Count(ev.Bytes(), mark))
		var svg bytes.Buffer
		require.NoError(t, h.SVG(&svg, "loss", "validation"))
		require.Contains(t, svg.String(), ">validation<")
	})
}
