package outputreaders

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Row is what a program has read of a line of the table.
type Row struct {
	Size, Root               int
	Time, AlgBW, BusBW       float64 // out of place
	InTime, InAlgBW, InBusBW float64
	Wrong, InWrong           int
}

// RowsAlone is nccl-tests' own layout: between the heading's line of units and the footer there are rows alone, of 13
// fields (NVIDIA/nccl-tests, src/util.cu, writeResultHeader to writeResultFooter).
func RowsAlone(out string) error {
	lines := strings.Split(out, "\n")
	from := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "#        (B)    (elements)") })
	to := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "# Out of bounds values") })
	if from < 0 || to < from {
		return errors.New("no heading, or no footer below it")
	}
	for _, l := range lines[from+1 : to] {
		if fields := strings.Fields(l); len(fields) != 13 || strings.HasPrefix(l, "#") {
			return fmt.Errorf("%q is no row", l)
		}
	}
	return nil
}

// SuperBench reads as microsoft/superbenchmark does, superbench/benchmarks/micro_benchmarks/cuda_nccl_bw_performance.py:
// the columns by the heading's names counted from the end, in the lines from "out-of-place" to "Out of bounds values"
// that begin with a number; a size of 0 is left out.
func SuperBench(out string, inPlace bool) (rows []Row, err error) {
	lines := strings.Split(out, "\n")
	from, to := -1, -1
	for i, l := range lines {
		if strings.Contains(l, "out-of-place") {
			from = i
		}
		if strings.Contains(l, "Out of bounds values") {
			to = i
		}
	}
	if from < 0 || to < from {
		return nil, errors.New("the result format is invalid")
	}
	size, columns := -1, map[string]int{}
	for _, l := range lines[from+1 : to] {
		fields := strings.Fields(l)
		if strings.Contains(l, "time") && strings.Contains(l, "busbw") {
			fields = fields[1:] // the number sign
			size = slices.Index(fields, "size")
			for i, name := range fields {
				if _, found := columns[name]; !found || inPlace { // whose columns come last
					columns[name] = i - len(fields)
				}
			}
			continue
		}
		if size < 0 || len(fields) == 0 || fields[0][0] < '0' || fields[0][0] > '9' {
			continue
		}
		var r Row
		if r.Size, err = strconv.Atoi(fields[size]); err != nil {
			return nil, err
		}
		for _, c := range []struct {
			name string
			to   *float64
		}{{"time", &r.Time}, {"algbw", &r.AlgBW}, {"busbw", &r.BusBW}} {
			if *c.to, err = strconv.ParseFloat(fields[len(fields)+columns[c.name]], 64); err != nil {
				return nil, err
			}
		}
		if r.Size > 0 {
			rows = append(rows, r)
		}
	}
	if len(rows) == 0 {
		return nil, errors.New("no bandwidth was found")
	}
	return rows, nil
}

var (
	amazonRow = regexp.MustCompile(`^(\d+)\s+(\d+)\s+(?:float|double|int|half)\s+(?:sum|prod|max|min|none)\s+(-?\d+)` +
		strings.Repeat(`\s+(\d+\.?\d*)\s+(\d+\.?\d*)\s+(\d+\.?\d*)\s+(\d+|N/A)`, 2))
	amazonAverage = regexp.MustCompile(`# Avg bus bandwidth\s*:\s*(\d+\.?\d*)`)
)

// Amazon reads as the converter to CSV of aws-samples/awsome-distributed-training does,
// micro-benchmarks/nccl-tests/nccl_to_csv.py: rows by one expression, N/A as no error, and the average.
func Amazon(out string) (rows []Row, average float64, err error) {
	average = -1
	for l := range strings.SplitSeq(out, "\n") {
		if m := amazonRow.FindStringSubmatch(strings.TrimSpace(l)); m != nil {
			number := func(s string) (x float64) {
				x, e := strconv.ParseFloat(s, 64)
				if e != nil && s != "N/A" {
					err = e
				}
				return x
			}
			rows = append(rows, Row{Size: int(number(m[1])), Root: int(number(m[3])),
				Time: number(m[4]), AlgBW: number(m[5]), BusBW: number(m[6]), Wrong: int(number(m[7])),
				InTime: number(m[8]), InAlgBW: number(m[9]), InBusBW: number(m[10]), InWrong: int(number(m[11]))})
		}
		if m := amazonAverage.FindStringSubmatch(l); m != nil {
			average, _ = strconv.ParseFloat(m[1], 64)
		}
	}
	if len(rows) == 0 || average < 0 {
		err = errors.New("no performance data, or no average")
	}
	return rows, average, err
}

var cloudDevice = regexp.MustCompile(`on\s+([\w\d\-.]+)\s+device\s+(\d+)`)

// CloudAI reads as NVIDIA/cloudai does, src/cloudai/workloads/nccl_test: rows are lines that begin with a digit and have
// 13 fields, of which all sizes, times and bandwidths must be numbers (performance_report_generation_strategy.py); the
// devices are lines with Rank and device; a job has succeeded if both lines of the footer are there
// (job_status_retrieval_strategy.py). It counts devices of NVIDIA's alone, which is left out.
func CloudAI(out string) (rows []Row, ranks int, devices map[string]int, err error) {
	devices = map[string]int{}
	for l := range strings.SplitSeq(out, "\n") {
		l = strings.TrimSpace(l)
		if strings.Contains(l, "Rank") && strings.Contains(l, "device") {
			m := cloudDevice.FindStringSubmatch(l)
			if m == nil {
				return nil, 0, nil, fmt.Errorf("%q has no host and device", l)
			}
			ranks++
			n, _ := strconv.Atoi(m[2])
			devices[m[1]] = max(devices[m[1]], n+1)
		}
		fields := strings.Fields(l)
		if l == "" || l[0] < '0' || l[0] > '9' || len(fields) != 13 {
			continue
		}
		var x [13]float64
		for _, i := range []int{0, 5, 6, 7, 9, 10, 11} {
			if x[i], err = strconv.ParseFloat(fields[i], 64); err != nil {
				return nil, 0, nil, fmt.Errorf("%q: field %d is no number, so the row is dropped", l, i)
			}
		}
		rows = append(rows, Row{Size: int(x[0]), Time: x[5], AlgBW: x[6], BusBW: x[7], InTime: x[9], InAlgBW: x[10], InBusBW: x[11]})
	}
	if !strings.Contains(out, "# Out of bounds values") || !strings.Contains(out, "# Avg bus bandwidth") {
		err = errors.New("the job has not succeeded: the footer is missing")
	}
	return rows, ranks, devices, err
}

// FlagPerf reads as FlagOpen/FlagPerf does, base/toolkits/interconnect-MPI_intraserver/dcu/BW/main.sh: the last field
// of the lines with "# Avg bus bandwidth", as one number.
func FlagPerf(out string) (average float64, err error) {
	var last []string
	for l := range strings.SplitSeq(out, "\n") {
		if strings.Contains(l, "# Avg bus bandwidth") {
			fields := strings.Fields(l)
			last = append(last, fields[len(fields)-1])
		}
	}
	return strconv.ParseFloat(strings.Join(last, " "), 64)
}

// AzureNHC reads as Azure/azurehpc-health-checks does, customTests/azure_nccl_allreduce.nhc: no line up to the first
// with "bandwidth" may have FAILED in it, and the sixth field of that is the average.
func AzureNHC(out string) (average float64, err error) {
	for l := range strings.SplitSeq(out, "\n") {
		if strings.Contains(l, "FAILED") {
			return 0, errors.New("out of bounds values failed")
		}
		if strings.Contains(l, "bandwidth") {
			fields := strings.Fields(l)
			if len(fields) < 6 {
				return 0, fmt.Errorf("%q has no sixth field", l)
			}
			return strconv.ParseFloat(fields[5], 64)
		}
	}
	return 0, errors.New("no bandwidth")
}
