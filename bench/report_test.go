package main_test

import (
	"bytes"
	"encoding/json"
	"image/png"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccl/goccl/bench/internal/browser"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
)

// What reads nccl-tests' tables reads ours.
func TestTableParses(t *testing.T) {
	for _, tc := range []struct {
		args               string
		iterations, stamps bool
		lines, devices     int
	}{
		{"-np 2 -e 64K", false, false, 14, 2},
		{"-np 3 -b 1K -e 4K -I", true, false, 3, 3},
		{"-np 2 -b 1K -e 4K -I -K 3 -S", true, true, 3, 2},
		{"-np 2 -b 1K -e 1K -c 0", false, false, 1, 2},
		{"-np 1 -b 1K -e 1K", false, false, 1, 1},
		{"-np 2 -op barrier", false, false, 1, 2},
		{"-np 2 -op all -b 64 -e 64", false, false, 11, 2},
		{"-np 1 -t 4 -split mod:2 -b 64 -e 64 -op reduce -r 1 -o max -d half", false, false, 1, 4},
	} {
		t.Run(tc.args, func(t *testing.T) {
			out := well(t, nil, strings.Fields(tc.args)...)
			table, err := parse(out, tc.iterations, tc.stamps)
			require.NoError(t, err, out)
			require.Len(t, table.lines, tc.lines)
			require.Equal(t, tc.devices, table.devices)
			require.True(t, table.okay)
			require.Equal(t, "0", table.wrong)
			for _, l := range table.lines {
				for _, m := range []measured{l.outPlace, l.inPlace} {
					require.Positive(t, m.time)
					require.Contains(t, []string{"0", "N/A"}, m.wrong)
					require.Equal(t, tc.iterations, m.iterations != nil)
					if tc.iterations {
						require.LessOrEqual(t, m.iterations[0], m.iterations[2], "the least, the 99th percentile")
						require.LessOrEqual(t, m.iterations[2], m.iterations[1])
					}
				}
				require.Equal(t, tc.stamps, l.stamp != "")
			}
		})
	}
}

// nccl-tests' own names, version 3, and the schema that docs has.
func TestJSONSchema(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("../docs/bench.schema.json")
	require.NoError(t, err)
	for _, args := range []string{
		"-np 2 -e 1K",
		"-np 1 -b 64 -e 64 -c 0",
		"-np 2 -hosts 2 -b 64 -e 64 -n 5 -op all -d float,f8e4m3 -o sum,mulsum -S",
		"-np 4 -split div:2 -b 1K -e 1K -rotate 2 -R 1 -u 2 -N 2 -overlap -ceiling 10",
		"-np 2 -op alltoallv -matrix spread:0.3 -b 1K -e 1K -time 1ms -backend cpu,cpu",
		"-np 2 -plan zero1 -model resnet50 -d bf16 -n 1",
		"-np 2 -sizes 64,1K -flush -n 2 -max-p99 10m",
	} {
		t.Run(args, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "out.json")
			well(t, nil, append(strings.Fields(args), "-J", path)...)
			b, err := os.ReadFile(path)
			require.NoError(t, err)
			v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
			require.NoError(t, err)
			require.NoError(t, schema.Validate(v))

			var f map[string]any
			require.NoError(t, json.Unmarshal(b, &f))
			require.Equal(t, 3.0, f["version"])
			row := f["results"].([]any)[0].(map[string]any)
			for _, name := range []string{"size", "count", "type", "redop", "root", "out_of_place", "in_place", "out_of_place_per_iter", "in_place_per_iter"} {
				require.Contains(t, row, name)
			}
			for _, name := range []string{"min_us", "max_us", "avg_us", "p50_us", "p95_us", "p99_us", "stdev_us", "cv_pct"} {
				require.Contains(t, row["in_place_per_iter"], name)
			}
			for _, name := range []string{"time", "alg_bw", "bus_bw", "nwrong"} {
				require.Contains(t, row["in_place"], name)
			}
			device := f["config"].(map[string]any)["devices"].([]any)[0]
			for _, name := range []string{"rank", "group", "pid", "hostname", "device", "device_hex", "device_info"} {
				require.Contains(t, device, name)
			}
		})
	}
}

// Nothing of the environment but what is on the list reaches any output.
func TestSecrets(t *testing.T) {
	dir := t.TempDir()
	env := []string{"GOCCL_TEST_TOKEN=s3cret1", "NCCL_PASSWORD=s3cret2", "AWS_SECRET_ACCESS_KEY=s3cret3", "WANDB_API_KEY=s3cret4", "HOME_SWEET=s3cret5", "SLURM_JWT=s3cret6",
		"GOCCL_PASSWD=s3cret7", "NCCL_AUTH=s3cret8", "CCL_AUTH=s3cret9", "UCX_PW=s3cret10", "FI_OPX_CREDS=s3cret11", "GOCCL_PROXY=http://me:s3cret12@host:80/", "I_MPI_LOGIN=s3cret13",
		"GOCCL_ALGO=allreduce=ring"}
	files := []string{filepath.Join(dir, "x.json"), filepath.Join(dir, "x.csv"), filepath.Join(dir, "x.html")}
	out, errs, status := bench(t, env, "-np", "2", "-e", "64", "-v", "-J", files[0], "-csv", files[1], "-html", files[2])
	require.Zero(t, status, errs)
	all := out + errs
	for _, file := range files {
		b, err := os.ReadFile(file)
		require.NoError(t, err)
		all += string(b)
	}
	require.NotContains(t, all, "s3cret")
	require.Contains(t, all, "GOCCL_ALGO=allreduce=ring", "what is on the list is there")
}

// A full disk costs the file, whichever, and not the table.
func TestFullDisks(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("hardware: no /dev/full on this system")
	}
	for _, flag := range []string{"J", "csv", "html"} {
		out, errs, status := bench(t, nil, "-np", "2", "-b", "64", "-e", "64", "-"+flag, "/dev/full")
		require.Equal(t, 1, status)
		require.Contains(t, out, "# Out of bounds values : 0 OK")
		require.Equal(t, "bench: -"+flag+" /dev/full: the results could not be written: no space left on device\n", errs)
	}
}

// A directory that cannot be is refused before anything is measured.
func TestFigureDirectory(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(file, nil, 0o666))
	out, errs, status := bench(t, nil, "-np", "2", "-b", "64", "-e", "64", "-svg", file)
	require.Equal(t, 2, status)
	require.Empty(t, out)
	require.Contains(t, errs, "bench: -svg "+file+": it is not a writable directory: ")

	out, errs, status = bench(t, []string{"PATH=" + t.TempDir()}, "-np", "2", "-b", "64", "-e", "64", "-png", t.TempDir())
	require.Equal(t, 2, status)
	require.Empty(t, out)
	require.Contains(t, errs, "bench: -png needs one of rsvg-convert, chromium, ")
	require.Contains(t, errs, "or use -svg, which needs none")
}

// -J - has standard output hold the file alone, for a program that reads it; the table goes to standard error.
func TestJSONToStandardOutput(t *testing.T) {
	out, errs, status := bench(t, nil, strings.Fields("-np 2 -b 64 -e 128 -J -")...)
	require.Zero(t, status, errs)
	var run struct{ Results []struct{ Size int } }
	require.NoError(t, json.Unmarshal([]byte(out), &run), out)
	require.Len(t, run.Results, 2)
	require.Contains(t, errs, "# Avg bus bandwidth")
	require.NoFileExists(t, "-")
	out = well(t, nil, strings.Fields("-np 1 -t 2 -b 64 -e 64 -q -csv -")...)
	require.True(t, strings.HasPrefix(out, "op,size_bytes,"), out)
	require.Equal(t, 3, strings.Count(out, "\n"), out)
}

// A collective of which nothing can be measured has no heading: the reason is below.
func TestNoHeadingWithoutRows(t *testing.T) {
	out := well(t, nil, strings.Fields("-np 2 -b 64 -e 64 -op broadcast,allreduce,allgather -d f8e4m3 -o mulsum -q")...)
	require.Contains(t, out, "# broadcast\n")
	require.Contains(t, out, "# allgather\n")
	require.NotContains(t, out, "# allreduce\n")
	require.Contains(t, out, "# allreduce f8e4m3 mulsum: not supported: ")
}

// A limit that is missed gives 3, and says so, after the table.
func TestLimits(t *testing.T) {
	for _, tc := range []struct {
		args   string
		status int
		want   string
	}{
		{"-min-busbw 0.0000001 -max-p99 1h", 0, ""},
		{"-min-busbw 1000000", 3, "bench: -min-busbw 1e+06: the average bus bandwidth is "},
		{"-max-p99 1ns", 3, "bench: -max-p99 1ns: the 99th percentile of allreduce float, "},
	} {
		out, errs, status := bench(t, nil, strings.Fields("-np 2 -b 64 -e 64 "+tc.args)...)
		require.Equal(t, tc.status, status, errs)
		require.Contains(t, out, "# Avg bus bandwidth")
		require.True(t, strings.HasPrefix(errs, tc.want), errs)
		require.LessOrEqual(t, strings.Count(errs, "\n"), 1)
	}
}

// The page of a real run, in a real browser: no message on its console, hence nothing
// that its policy (no request to anywhere) had to stop, and the curves are there.
func TestHTMLInABrowser(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: a browser draws seven pages; TestPagesInABrowser of package report has one")
	}
	dir := t.TempDir()
	page := filepath.Join(dir, "report.html")
	well(t, nil, "-np", "2", "-op", "allreduce,broadcast", "-e", "1M", "-html", page, "-svg", filepath.Join(dir, "figures"), "-png", filepath.Join(dir, "figures"))
	dom, log := browser.Page(t, page, 400, "--enable-logging=stderr", "--v=0")
	require.NotContains(t, log, "CONSOLE")
	require.Equal(t, 12, strings.Count(dom, "<polyline "), "two curves and three, twice, and one of each together")
	// The figures are there as files as well, drawn on white at twice the size, with something on them.
	for _, name := range []string{"allreduce-float-sum-busbw", "allreduce-float-sum-time", "allreduce-float-sum-ranks", "broadcast-float-root-0-busbw"} {
		require.FileExists(t, filepath.Join(dir, "figures", name+".svg"))
		f, err := os.Open(filepath.Join(dir, "figures", name+".png"))
		require.NoError(t, err)
		picture, err := png.Decode(f)
		require.NoError(t, err)
		f.Close()
		size := picture.Bounds().Size()
		require.GreaterOrEqual(t, size.X, 1400)
		r, g, b, _ := picture.At(2, 2).RGBA()
		require.Equal(t, []uint32{0xffff, 0xffff, 0xffff}, []uint32{r, g, b}, name)
		other := 0
		for x := range size.X {
			for y := range size.Y {
				if picture.At(x, y) != picture.At(2, 2) {
					other++
				}
			}
		}
		require.Greater(t, other, 4000, name)
	}
	require.Equal(t, 2, strings.Count(dom, `class="heat"`))
	require.NotRegexp(t, `(?i)(https?:|src=|href="[^d]|@import)`, dom)

	// The policy does work: a page that asks for something is stopped, and told.
	b, err := os.ReadFile(page)
	require.NoError(t, err)
	bad := filepath.Join(dir, "bad.html")
	require.NoError(t, os.WriteFile(bad, regexp.MustCompile(`</body>`).ReplaceAll(b, []byte(`<img src="http://127.0.0.1:9/x.png"></body>`)), 0o666))
	_, log = browser.Page(t, bad, 400, "--enable-logging=stderr", "--v=0")
	require.Contains(t, log, "CONSOLE")
}
