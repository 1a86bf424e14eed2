package outputreaders

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// NCCLTests is the file of nccl-tests, version 3, field by field with its type there (NVIDIA/nccl-tests, src/util.cu):
// truth values and roots are strings. Decoding fails on another type; Strict checks that no field is missing.
type NCCLTests struct {
	Version   *int      `json:"version"`
	StartTime *string   `json:"start_time"`
	Args      *[]string `json:"args"`
	Env       *[]string `json:"env"`
	NCCL      *int      `json:"nccl_version"`
	Config    *struct {
		Threads  *int      `json:"nthreads"`
		GPUs     *int      `json:"ngpus"`
		Min      *int      `json:"minimum_bytes"`
		Max      *int      `json:"maximum_bytes"`
		Factor   *int      `json:"step_factor"` // one of the two
		Step     *int      `json:"step_bytes"`
		Warmup   *int      `json:"warmup_iters"`
		Iters    *int      `json:"iterations"`
		Agg      *int      `json:"aggregated_iterations"`
		Check    *int      `json:"validation"`
		Graph    *int      `json:"graph"`
		Blocking *string   `json:"blocking_collectives"`
		Each     *string   `json:"per_iter_timing"`
		Skip     *int      `json:"per_iter_skip"`
		Parallel *string   `json:"parallel_init"`
		Devices  *[]Device `json:"devices"`
	} `json:"config"`
	Results     *[]Result `json:"results"`
	OutOfBounds *struct {
		Count *int    `json:"count"`
		OK    *string `json:"okay"`
	} `json:"out_of_bounds"`
	Average *struct {
		Bandwidth *float64 `json:"bandwidth"`
		OK        *string  `json:"okay"`
	} `json:"average_bus_bandwidth"`
	Errors  *[]string `json:"errors"`
	EndTime *string   `json:"end_time"`
}

// Device is a rank's.
type Device struct {
	Rank   *int    `json:"rank"`
	Group  *int    `json:"group"`
	Pid    *int    `json:"pid"`
	Host   *string `json:"hostname"`
	Device *int    `json:"device"`
	Hex    *string `json:"device_hex"`
	Info   *string `json:"device_info"`
}

// Result is a row.
type Result struct {
	Size       *int    `json:"size"`
	Count      *int    `json:"count"`
	Type       *string `json:"type"`
	Redop      *string `json:"redop"`
	Root       *string `json:"root"`
	Out        *Half   `json:"out_of_place"`
	OutIter    *Iter   `json:"out_of_place_per_iter"`
	In         *Half   `json:"in_place"`
	InIter     *Iter   `json:"in_place_per_iter"`
	Iterations *int    `json:"actual_iterations"`
	Experiment *string `json:"experiment_name"`
}

// Half is one half of a row; Wrong is null where nothing was checked.
type Half struct {
	Time  *float64 `json:"time"`
	AlgBW *float64 `json:"alg_bw"`
	BusBW *float64 `json:"bus_bw"`
	Wrong *float64 `json:"nwrong"`
}

// Iter is of -I 1.
type Iter struct {
	Skipped *int        `json:"skipped_iterations"`
	Min     *float64    `json:"min_us"`
	Max     *float64    `json:"max_us"`
	Avg     *float64    `json:"avg_us"`
	P50     *float64    `json:"p50_us"`
	P95     *float64    `json:"p95_us"`
	P99     *float64    `json:"p99_us"`
	Stdev   *float64    `json:"stdev_us"`
	CV      *float64    `json:"cv_pct"`
	Times   *[]float64  `json:"times_us"`
	Ranks   [][]float64 `json:"per_process_max_times_us"`
}

// Strict decodes the file, and is an error if a field of nccl-tests is missing or of another type.
func Strict(file []byte) (*NCCLTests, error) {
	f := new(NCCLTests)
	if err := json.Unmarshal(file, f); err != nil {
		return nil, err
	}
	b, _ := json.Marshal(f)
	var all any
	_ = json.Unmarshal(b, &all)
	if missing := nulls("", all); missing != "" {
		return nil, errors.New(missing + " is missing")
	}
	if c := f.Config; (c.Factor == nil) == (c.Step == nil) {
		return nil, errors.New("of step_factor and step_bytes there is one")
	}
	return f, nil
}

// nulls is the path of the first field without a value, of those that have one always.
func nulls(path string, v any) string {
	switch v := v.(type) {
	case nil:
		for _, may := range []string{".nwrong", ".step_factor", ".step_bytes", ".per_process_max_times_us"} {
			if strings.HasSuffix(path, may) {
				return ""
			}
		}
		return path
	case map[string]any:
		for name, x := range v {
			if missing := nulls(path+"."+name, x); missing != "" {
				return missing
			}
		}
	case []any:
		for i, x := range v {
			if missing := nulls(path+"["+strconv.Itoa(i)+"]", x); missing != "" {
				return missing
			}
		}
	}
	return ""
}

// ClusterHealth reads as Azure/cluster-health-monitor does, whose node checker runs nccl-tests with -J: results with
// sizes, a count of what is out of bounds, and the average (as test/e2e feeds it).
func ClusterHealth(file []byte) (average float64, err error) {
	var f struct {
		Results []struct {
			Size int64 `json:"size"`
		} `json:"results"`
		OutOfBounds struct {
			Count int64 `json:"count"`
		} `json:"out_of_bounds"`
		Average struct {
			Bandwidth float64 `json:"bandwidth"`
		} `json:"average_bus_bandwidth"`
	}
	if err := json.Unmarshal(file, &f); err != nil {
		return 0, err
	}
	if len(f.Results) == 0 || f.OutOfBounds.Count != 0 {
		return 0, fmt.Errorf("%d results, %d values out of bounds", len(f.Results), f.OutOfBounds.Count)
	}
	return f.Average.Bandwidth, nil
}

// Nebius reads as Nebius' validation of clusters does (nebius_cxcli, _nccl_json_report_summary): the largest busbw of
// both halves of all rows, with its size, beside the footer.
func Nebius(file []byte) (peak float64, size int, err error) {
	var f struct {
		Version int            `json:"nccl_version"`
		Config  map[string]any `json:"config"`
		Results []struct {
			Size int `json:"size"`
			In   struct {
				BusBW float64 `json:"bus_bw"`
			} `json:"in_place"`
			Out struct {
				BusBW float64 `json:"bus_bw"`
			} `json:"out_of_place"`
		} `json:"results"`
		Average struct {
			Bandwidth float64 `json:"bandwidth"`
			OK        any     `json:"okay"`
		} `json:"average_bus_bandwidth"`
	}
	if err := json.Unmarshal(file, &f); err != nil {
		return 0, 0, err
	}
	for _, name := range []string{"minimum_bytes", "maximum_bytes", "warmup_iters", "iterations", "aggregated_iterations", "validation", "graph",
		"blocking_collectives", "parallel_init"} {
		if f.Config[name] == nil {
			return 0, 0, errors.New("config." + name + " is missing")
		}
	}
	for _, r := range f.Results {
		if best := max(r.In.BusBW, r.Out.BusBW); best > peak {
			peak, size = best, r.Size
		}
	}
	if f.Average.Bandwidth > peak {
		return 0, 0, fmt.Errorf("an average of %g over a peak of %g", f.Average.Bandwidth, peak)
	}
	return peak, size, nil
}

// Analyze reads as NVIDIA/nccl-tests' own analyze_perf_json.py does: each row has the figures of single iterations,
// times_us is the largest of the processes' rows in each iteration, rows belong to hosts by the devices' order, and no
// average is 0. It returns how many rows of processes there are.
func Analyze(file []byte) (processes int, err error) {
	var f struct {
		Config struct {
			Devices []struct {
				Host string `json:"hostname"`
			} `json:"devices"`
		} `json:"config"`
		Results []map[string]json.RawMessage `json:"results"`
	}
	if err := json.Unmarshal(file, &f); err != nil {
		return 0, err
	}
	for i, r := range f.Results {
		for _, key := range []string{"out_of_place_per_iter", "in_place_per_iter"} {
			var p struct {
				Min   float64     `json:"min_us"`
				Max   float64     `json:"max_us"`
				Avg   float64     `json:"avg_us"`
				P99   float64     `json:"p99_us"`
				CV    float64     `json:"cv_pct"`
				Times []float64   `json:"times_us"`
				Ranks [][]float64 `json:"per_process_max_times_us"`
			}
			if err := json.Unmarshal(r[key], &p); err != nil {
				return 0, fmt.Errorf("result %d: %s: %w", i, key, err)
			}
			if p.Avg <= 0 || p.Min > p.Avg || p.Max < p.Avg {
				return 0, fmt.Errorf("result %d: %s: avg %g of %g to %g", i, key, p.Avg, p.Min, p.Max)
			}
			processes = len(p.Ranks)
			if processes > len(f.Config.Devices) {
				return 0, fmt.Errorf("result %d: %s: %d processes on %d devices", i, key, processes, len(f.Config.Devices))
			}
			for n, t := range p.Times {
				slowest := 0.0
				for _, times := range p.Ranks {
					if len(times) != len(p.Times) {
						return 0, fmt.Errorf("result %d: %s: %d times of a process, %d in all", i, key, len(times), len(p.Times))
					}
					slowest = max(slowest, times[n])
				}
				if processes > 0 && math.Abs(slowest-t) >= 0.001 {
					return 0, fmt.Errorf("result %d: %s: iteration %d took %g, its slowest process %g", i, key, n, t, slowest)
				}
			}
		}
	}
	return processes, nil
}
