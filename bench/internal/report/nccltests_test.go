package report

import (
	"bytes"
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Files of nccl-tests and of the layout before are read.
func TestOtherLayouts(t *testing.T) {
	f, _, err := Load("testdata/nccl-tests-3.json")
	require.NoError(t, err)
	require.Equal(t, 22809, f.NCCL)
	require.Equal(t, 2, f.Config.Ranks)
	require.Equal(t, 2, f.Config.Threads)
	require.Equal(t, "NVIDIA H100 80GB HBM3", f.Config.Devices[1].Info)
	require.Len(t, f.Results, 2)
	first := f.Results[0]
	require.Equal(t, "allreduce", first.Op, "by the program's name")
	require.Equal(t, -1, first.Root)
	require.Equal(t, 12.345678, first.OutOfPlace.Time)
	require.Equal(t, int64(0), *first.OutOfPlace.Wrong)
	require.Zero(t, first.InPlace.Time)
	require.Nil(t, first.InPlace.Wrong)
	require.Equal(t, 9.5, f.Results[1].InPlace.Time)
	require.Equal(t, int64(3), *f.Results[1].InPlace.Wrong)
	require.Equal(t, Verdict{1, false}, f.OutOfBounds)
	require.Equal(t, "unchecked", f.Average.OK)

	f, _, err = Load("testdata/goccl-bench-1.json")
	require.NoError(t, err)
	require.Equal(t, oldSchema, f.Schema)
	require.Equal(t, "0.2.0", f.Goccl)
	require.Equal(t, "reduce", f.Results[1].Op)
	require.Equal(t, 128, f.Results[1].Size)
	require.Equal(t, 0, f.Results[1].Root)
	require.Len(t, f.Results[1].OutOfPlaceIter.Ranks, 2)
	require.Equal(t, 41.2, f.Results[0].OutOfPlace.Slowest.Late)
	require.Equal(t, "cpu", f.Config.Engine)
	require.NotNil(t, f.Startup)
	require.Equal(t, true, f.OutOfBounds.OK)

	_, err = Parse([]byte(`{"version":3,"goccl":{"schema":"goccl-bench/7"}}`))
	require.ErrorContains(t, err, `its schema is "goccl-bench/7", and this program knows goccl-bench/2 and goccl-bench/1`)
	_, err = Parse([]byte(`{"version":3,"results":[{"size":8,"root":"x"}]}`))
	require.ErrorContains(t, err, `a result of 8 bytes has the root "x"`)
}

// With one rank busbw has no meaning: null is no number, which nccl-tests has there.
func TestOneRank(t *testing.T) {
	f := sampleFile(1)
	f.Results = f.Results[:1]
	f.Results[0].OutOfPlace = NewResult(8, 2, 0)
	f.Results[0].Iterations, f.Results[0].OutOfPlaceIter.Skipped = 7, 2
	var b bytes.Buffer
	require.NoError(t, f.JSON(&b))
	require.NoError(t, validate(t, f))
	require.NotContains(t, b.String(), `"bus_bw": null`)
	got, err := Parse(b.Bytes())
	require.NoError(t, err)
	require.Equal(t, f.Results, got.Results)
}

func TestNCCLVersion(t *testing.T) {
	for engine, want := range map[string]int{"cpu": 0, "nccl: NCCL 2.28.9": 22809, "cpu, nccl: NCCL 2.16.2": 21602, "NCCL 2.8.4": 2804, "rccl: RCCL 2.22.3": 0} {
		require.Equal(t, want, ncclVersion(engine), engine)
	}
}

// The table of fields in docs/reports.md is that of the schema.
func TestDocsHaveTheFields(t *testing.T) {
	b, err := os.ReadFile("../../../docs/bench.schema.json")
	require.NoError(t, err)
	type object struct {
		Properties map[string]*object `json:"properties"`
		Items      *object            `json:"items"`
	}
	var schema struct {
		object
		Defs map[string]*object `json:"$defs"`
	}
	require.NoError(t, json.Unmarshal(b, &schema))
	ours := schema.Properties["goccl"]
	row := schema.Defs["row"]
	doc, err := os.ReadFile("../../../docs/reports.md")
	require.NoError(t, err)
	for name, want := range map[string][2]*object{
		"the file":                   {&schema.object, ours},
		"`config`":                   {schema.Properties["config"], ours.Properties["config"]},
		"`devices`":                  {schema.Properties["config"].Properties["devices"].Items, nil},
		"`results`":                  {row, row.Properties["goccl"]},
		"`out_of_place`, `in_place`": {schema.Defs["half"], schema.Defs["our_half"]},
		"`..._per_iter`":             {schema.Defs["per_iter"], nil},
		"`out_of_bounds`":            {schema.Properties["out_of_bounds"], nil},
		"`average_bus_bandwidth`":    {schema.Properties["average_bus_bandwidth"], nil},
	} {
		m := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(name) + ` \| (.*) \|(.*)\|$`).FindStringSubmatch(string(doc))
		require.NotNil(t, m, name)
		for i, o := range want {
			said := strings.Fields(strings.Trim(m[1+i], " `"))
			has := []string{}
			if o != nil {
				for field := range o.Properties {
					if field != "goccl" {
						has = append(has, field)
					}
				}
			}
			slices.Sort(said)
			slices.Sort(has)
			require.Equal(t, has, said, name)
		}
	}
	require.Contains(t, string(doc), "`"+Schema+"`, describes")
}

// Remarks name the row that they are about.
func TestRemarks(t *testing.T) {
	r := goldenRows()[1]
	r.Op, r.Cycle = "reduce", 2
	require.Empty(t, r.Remarks())
	r.InPlace.Slowest = &Straggler{Rank: 13, Host: "x3001", Late: 412.7, Rest: 3.1}
	r.Overlap = NewOverlap(129.1, 130.2, 171.8)
	require.Equal(t, []string{
		"reduce half avg root 3, 8 bytes, cycle 2, in place: rank 13 on x3001 arrives 412.70 us late at the barrier, the next 3.10 us",
	}, r.Remarks())
	require.Equal(t, "reduce half avg root 3, 8 bytes, cycle 2, overlap: alone 129.10 us, compute 130.20 us, together 171.80 us: 41.60 us exposed, 68 % hidden, comm:comp 0.99", r.Overlapped())
}

// The headings of -I and -S are nccl-tests', and by its names a busbw without a meaning is 0.00, as there.
func TestHeadings(t *testing.T) {
	require.Equal(t, "#\n"+
		"#                                                                 out-of-place (+ per-iteration)                                in-place (+ per-iteration)\n"+
		"#       size         count      type   redop    root     time   algbw   busbw  #wrong    i_min    i_max    i_p99    i_cv%     time   algbw   busbw  #wrong    i_min    i_max    i_p99    i_cv%           timestamp\n"+
		"#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)     (us)     (us)      (%)     (us)  (GB/s)  (GB/s)             (us)     (us)     (us)      (%)   %Y-%m-%d %H:%M:%S\n", Layout{Iterations: true, Stamp: true}.Head())
	r := goldenRows()[1]
	require.Contains(t, Layout{}.Line(&r), "     n/a     N/A")
	require.Contains(t, Layout{Zero: true}.Line(&r), "    0.00     N/A")
}
