package report

import (
	"encoding/csv"
	"io"
	"strconv"
	"strings"
)

// columns of the CSV file: one line for each half of a row.
var columns = []string{"op", "size_bytes", "count", "type", "redop", "root", "backend", "algorithm", "cycle", "place",
	"nranks",
	"time_us", "algbw_gbs", "busbw_gbs", "wrong", "time_min_us", "time_avg_us", "time_max_us", "first_call_us",
	"i_min_us", "i_max_us", "i_avg_us", "i_p50_us", "i_p95_us", "i_p99_us", "i_stdev_us", "i_cv_pct", "skew_us"}

// WriteCSV writes the results as CSV (RFC 4180). What is not known is empty.
func (f *File) WriteCSV(w io.Writer) error {
	c := csv.NewWriter(w)
	if err := c.Write(columns); err != nil {
		return err
	}
	for _, r := range f.Results {
		for _, half := range r.Halves() {
			place, _, _ := strings.Cut(half.Where, " ")
			if err := c.Write(f.record(&r, place, half.Result, half.Iter)); err != nil {
				return err
			}
		}
	}
	c.Flush()
	return c.Error()
}

func (f *File) record(r *Row, place string, h *Result, iter *PerIter) []string {
	bus, wrong := "", ""
	if h.BusBW != nil {
		bus = decimal(*h.BusBW)
	}
	if h.Wrong != nil {
		wrong = strconv.FormatInt(*h.Wrong, 10)
	}
	record := []string{r.Op, strconv.Itoa(r.Size), strconv.Itoa(r.Count), r.Type, r.Redop, strconv.Itoa(r.Root),
		r.Backend, r.Algorithm,
		strconv.Itoa(r.Cycle), place, strconv.Itoa(f.Config.GroupRanks),
		decimal(h.Time), decimal(h.AlgBW), bus, wrong, decimal(h.TimeMin), decimal(h.TimeAvg), decimal(h.TimeMax),
		decimal(h.First)}
	if iter == nil {
		return append(record, make([]string, len(columns)-len(record))...)
	}
	for _, x := range []float64{iter.Min, iter.Max, iter.Avg, iter.P50, iter.P95, iter.P99, iter.Stdev, iter.CV,
		iter.Skew} {
		record = append(record, decimal(x))
	}
	return record
}

// decimal writes x with six digits, which is more than clocks tell.
func decimal(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
