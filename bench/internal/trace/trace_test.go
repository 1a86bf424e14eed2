package trace

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What is written of jobs in which this and that went wrong, and what is said of it.
func TestCommandSaysWhatWentWrong(t *testing.T) {
	const head = `{"goccl_trace":1,"job":"0123456789abcdef","comm":"world","id":"1","size":3,"pid":7,`
	allreduce := func(seq, state string) string {
		return `{"seq":` + seq + `,"kind":"AllReduce","type":"float","op":"sum","count":8,"root":-1,"state":"` + state + `","start_ns":1,"caller":"train.go:88"}`
	}
	barrier := `{"seq":1,"kind":"Barrier","count":0,"root":-1,"state":"complete","start_ns":1,"end_ns":2}`
	for _, tc := range []struct {
		name  string
		files map[string][]string
		want  string
	}{
		{"all is well", map[string][]string{"a.jsonl": {
			head + `"rank":0,"world":0,"host":"a","why":"exit","calls":[` + barrier + `]}`,
		}}, `job 0123456789ab:
  nothing went wrong: all Comms were closed normally
`},
		{"a late rank", map[string][]string{"a.jsonl": {
			head + `"rank":0,"world":0,"host":"a","why":"failure","code":"timed out","peer":2,"error":"ccl: rank 0: timed out at rank 2","calls":[` + barrier + `,` + allreduce("2", "running") + `]}`,
			head + `"rank":0,"world":0,"host":"a","why":"standing","doing":"waits","calls":[` + allreduce("2", "running") + `]}`,
			head + `"rank":1,"world":1,"host":"a","why":"standing","doing":"waits","calls":[` + allreduce("2", "running") + `]}`,
			head + `"rank":2,"world":2,"host":"b","why":"standing","doing":"outside","calls":[` + barrier + `]}`,
		}, "b.jsonl": {
			head + `"rank":1,"world":1,"host":"a","why":"failure","code":"timed out","peer":2,"error":"ccl: rank 1: timed out at rank 2","calls":[` + barrier + `,` + allreduce("2", "running") + `]}`,
		}}, `job 0123456789ab:
  world (3 ranks):
    timed out, by ranks 0, 1: ccl: rank 0: timed out at rank 2
    nothing was written by rank 2: killed, or not failed
    rank 2 on host b had not reached call #2; its last is #1 Barrier
    in #2 AllReduce float x 8 sum at train.go:88: ranks 0, 1
`},
		{"a mismatch", map[string][]string{"a.jsonl": {
			head + `"rank":0,"world":0,"host":"a","why":"failure","code":"ranks disagree about the call","peer":1,"error":"ccl: it differs","calls":[` + allreduce("1", "failed") + `]}`,
			head + `"rank":1,"world":1,"host":"a","why":"failure","code":"ranks disagree about the call","peer":0,"error":"ccl: it differs","calls":[` + barrier + `]}`,
			head + `"rank":2,"world":2,"host":"a","why":"failure","code":"ranks disagree about the call","peer":0,"error":"ccl: it differs","calls":[` + barrier + `]}`,
		}}, `job 0123456789ab:
  world (3 ranks):
    ranks disagree about the call, by ranks 0, 1, 2: ccl: it differs
    the ranks first differ in call #1:
      rank 0: AllReduce float x 8 sum at train.go:88
      ranks 1, 2: Barrier
`},
		{"a deadlock", map[string][]string{"a.jsonl": {
			`{"goccl_trace":1,"job":"j","comm":"tp","id":"8","size":2,"rank":0,"world":0,"host":"a","why":"standing","doing":"waits","calls":[` + allreduce("5", "running") + `]}`,
			`{"goccl_trace":1,"job":"j","comm":"tp","id":"8","size":2,"rank":1,"world":1,"host":"a","why":"standing","doing":"outside","calls":[` + allreduce("4", "complete") + `]}`,
			`{"goccl_trace":1,"job":"j","comm":"dp","id":"9","size":2,"rank":0,"world":0,"host":"a","why":"standing","doing":"outside","calls":[` + allreduce("6", "complete") + `]}`,
			`{"goccl_trace":1,"job":"j","comm":"dp","id":"9","size":2,"rank":1,"world":1,"host":"b","why":"standing","doing":"waits","calls":[` + allreduce("7", "running") + `]}`,
		}}, `job j:
  deadlock: rank 0 in tp #5 AllReduce float x 8 sum at train.go:88 on host a waits for 1; rank 1 in dp #7 AllReduce float x 8 sum at train.go:88 on host b waits for 0
`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			dir := t.TempDir()
			for name, lines := range tc.files {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(strings.Join(lines, "\n")+"\n"), 0o600))
			}
			var out, errs bytes.Buffer
			assert.Zero(t, Command([]string{dir}, &out, &errs))
			assert.Equal(t, tc.want, out.String())
			assert.Empty(t, errs.String())
		})
	}
}

// What cannot be read is told, and the rest is read.
func TestCommandComplains(t *testing.T) {
	dir := t.TempDir()
	var out, errs bytes.Buffer
	assert.Equal(t, 2, Command([]string{dir}, &out, &errs))
	assert.Contains(t, errs.String(), "has no trace files")
	assert.Equal(t, 2, Command([]string{filepath.Join(dir, "none")}, &out, &errs))
	assert.Equal(t, 2, Command(nil, &out, &errs))
	errs.Reset()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a.jsonl"), []byte("{\"goccl_trace\":1,\"job\":\"j\",\"size\":1,\"why\":\"exit\"}\n{\"goccl_tr"), 0o600))
	assert.Zero(t, Command([]string{dir}, &out, &errs))
	assert.Contains(t, errs.String(), "a.jsonl:2: not a line of JSON")
	assert.Contains(t, out.String(), "nothing went wrong")
}

// What a file and its name have of control characters does not reach the terminal.
func TestTextsArePlain(t *testing.T) {
	dir := t.TempDir()
	const esc = `\u001b]0;x\u0007\n\u0000`
	line := func(rank int, more string) string {
		return fmt.Sprintf(`{"goccl_trace":1,"job":"%[1]s","comm":"%[1]s","id":"%[1]s","rank":%[2]d,"size":2,"world":%[2]d,"host":"%[1]s",%[3]s,`+
			`"calls":[{"seq":1,"kind":"%[1]s","type":"%[1]s","op":"%[1]s","state":"%[1]s","caller":"%[1]s"}]}`, esc, rank, more)
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "a\x1b[2J.jsonl"), []byte(strings.Join([]string{
		line(0, `"why":"failure","code":"`+esc+`","error":"`+esc+`","peer":1`), line(1, `"why":"standing","doing":"`+esc+`"`),
		"{\"\x1b[2J\":", ""}, "\n")), 0o600))
	var out, errs bytes.Buffer
	assert.Zero(t, Command([]string{dir}, &out, &errs))
	for _, text := range []string{out.String(), errs.String()} {
		assert.NotEmpty(t, text)
		assert.False(t, strings.ContainsFunc(strings.ReplaceAll(text, "\n", ""), unicode.IsControl), "%q", text)
	}
	assert.Contains(t, out.String(), `\x1b]0;x\a\n\x00`)
	assert.Contains(t, errs.String(), `a\x1b[2J.jsonl:3: not a line of JSON`)
}

func TestParseRefuses(t *testing.T) {
	for in, want := range map[string]string{
		`7`:                                    "not a line of JSON",
		`{}`:                                   "not a line of a goccl trace",
		`{"goccl_trace":2}`:                    "a trace of version 2",
		`{"goccl_trace":1,"size":2,"rank":2}`:  "there is no such rank",
		`{"goccl_trace":1,"size":2,"rank":-1}`: "there is no such rank",
		`{"goccl_trace":1,"size":2,"rank":1,"peer":2}`:                                    "not a rank of the Comm",
		`{"goccl_trace":1,"size":99999999999,"rank":-1}`:                                  "there is no such rank",
		`{"goccl_trace":1,"size":1,"clock_ns":-1}`:                                        "a time that no job lasts",
		`{"goccl_trace":1,"size":1,"calls":[{"seq":1,"end_ns":9000000000000000000}]}`:     "a time that no job lasts",
		`{"goccl_trace":1,"size":1,"graphs":[{"seq":1,"start_ns":-9000000000000000000}]}`: "a time that no job lasts",
	} {
		_, err := parse([]byte(in))
		assert.ErrorContains(t, err, want, in)
	}
}

// Whatever is in a file, something is said about it, and not too much.
func FuzzTrace(f *testing.F) {
	f.Add([]byte(`{"goccl_trace":1,"job":"j","comm":"tp","id":"8","size":2,"rank":0,"why":"standing","doing":"waits","for":1,"calls":[{"seq":1,"kind":"Recv","root":1}]}`))
	f.Add([]byte(`{"goccl_trace":1,"job":"j","size":16777216,"rank":5,"why":"failure","code":"timed out","calls":[{"seq":18446744073709551615,"kind":"Barrier","root":-1}]}`))
	f.Add([]byte("{\"goccl_trace\":1,\"size\":1}\n{\"goccl_trace\":1,\"size\":2,\"rank\":1,\"code\":\"x\"}\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		said := 0
		lines := read("fuzz", bytes.NewReader(in), func(string) { said++ })
		if said > len(in)+1 {
			t.Fatal("more complaints than lines")
		}
		for _, j := range group(lines) {
			n := 0
			j.explain(func(format string, args ...any) {
				n++
				if text := fmt.Sprintf(format, args...); strings.ContainsFunc(strings.ReplaceAll(text, "\n", ""), unicode.IsControl) {
					t.Fatalf("%q", text)
				}
			})
			if n == 0 {
				t.Fatal("nothing was said")
			}
		}
		require.NoError(t, picture(group(lines)).write(io.Discard))
	})
}
