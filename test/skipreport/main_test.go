package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestReport(t *testing.T) {
	const (
		pass = `{"Action":"output","Package":"p","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"output","Package":"p","Output":"ok  \tp\t0.1s\n"}
{"Action":"pass","Package":"p"}
`
		fail = `{"Action":"output","Package":"q","Test":"TestB","Output":"    b_test.go:7: wrong\n"}
{"Action":"fail","Package":"q","Test":"TestB"}
{"Action":"output","Package":"q","Output":"FAIL\tq\t0.1s\n"}
{"Action":"fail","Package":"q"}
`
		crash = `{"Action":"output","Package":"q","Test":"TestC","Output":"panic: no\n"}
{"Action":"fail","Package":"q"}
`
		skip = `{"Action":"output","Package":"p","Test":"TestS","Output":"    s_test.go:3: needs root\n"}
{"Action":"skip","Package":"p","Test":"TestS"}
`
		hardware = `{"Action":"output","Package":"p","Test":"TestH","Output":"    h_test.go:3: hardware: no AVX-512\n"}
{"Action":"skip","Package":"p","Test":"TestH"}
`
		long = `{"Action":"output","Package":"p","Test":"TestL","Output":"    l_test.go:3: -short: a thousand ranks\n"}
{"Action":"skip","Package":"p","Test":"TestL"}
`
		racing = `{"Action":"output","Package":"p","Test":"TestR","Output":"    r_test.go:3: the race detector allocates\n"}
{"Action":"skip","Package":"p","Test":"TestR"}
`
		noTests = `{"Action":"output","Package":"n","Output":"?   \tn\t[no test files]\n"}
{"Action":"skip","Package":"n"}
`
		noBuild = `{"ImportPath":"q","Action":"build-output","Output":"q.go:1: undefined: x\n"}
{"ImportPath":"q","Action":"build-fail"}
`
	)
	for _, tc := range []struct {
		name, in        string
		requireAll, own bool // own: it ran with -short and -race, whose skips are none
		ok              bool
		out             string
	}{
		{"pass", pass, true, false, true,
			"ok  \tp\t0.1s\n1 tests passed, 0 failed, 0 skipped, 0 for want of hardware\n"},
		{"fail", pass + fail, false, false, false,
			"ok  \tp\t0.1s\n    b_test.go:7: wrong\nFAIL\tq\t0.1s\n1 tests passed, 2 failed, 0 skipped, 0 for want of hardware\n"},
		{"crash", pass + crash, false, false, false,
			"ok  \tp\t0.1s\npanic: no\n1 tests passed, 1 failed, 0 skipped, 0 for want of hardware\n"},
		{"skip allowed", pass + skip, false, false, true,
			"ok  \tp\t0.1s\nskipped: p TestS: needs root\n1 tests passed, 0 failed, 1 skipped, 0 for want of hardware\n"},
		{"skip refused", pass + skip, true, false, false,
			"ok  \tp\t0.1s\nskipped: p TestS: needs root\n1 tests passed, 0 failed, 1 skipped, 0 for want of hardware\n" +
				"FAIL: GOCCL_REQUIRE=all allows no skipped test\n"},
		{"skip for -short without it", pass + long, true, false, false,
			"ok  \tp\t0.1s\nskipped: p TestL: -short: a thousand ranks\n1 tests passed, 0 failed, 1 skipped, 0 for want of hardware\n" +
				"FAIL: GOCCL_REQUIRE=all allows no skipped test\n"},
		{"hardware", pass + hardware, true, false, true,
			"ok  \tp\t0.1s\nskipped: p TestH: hardware: no AVX-512\n1 tests passed, 0 failed, 0 skipped, 1 for want of hardware\n"},
		{"no test files", pass + noTests, true, false, true,
			"ok  \tp\t0.1s\n?   \tn\t[no test files]\n1 tests passed, 0 failed, 0 skipped, 0 for want of hardware\n"},
		{"no build", pass + noBuild, false, false, false,
			"ok  \tp\t0.1s\nq.go:1: undefined: x\n1 tests passed, 1 failed, 0 skipped, 0 for want of hardware\n"},
		{"nothing", "", false, false, false,
			"0 tests passed, 0 failed, 0 skipped, 0 for want of hardware\nFAIL: there was no test\n"},
		{"other text", "go: no such tool\n" + pass, false, false, true,
			"go: no such tool\nok  \tp\t0.1s\n1 tests passed, 0 failed, 0 skipped, 0 for want of hardware\n"},
		{"-race", pass + racing, true, true, true,
			"ok  \tp\t0.1s\n1 tests passed, 0 failed, 0 skipped, 0 for want of hardware, 1 for -short or -race\n"},
		{"-short", pass + long, true, true, true,
			"ok  \tp\t0.1s\n1 tests passed, 0 failed, 0 skipped, 0 for want of hardware, 1 for -short or -race\n"},
		{"another skip with them", pass + skip, true, true, false,
			"ok  \tp\t0.1s\nskipped: p TestS: needs root\n1 tests passed, 0 failed, 1 skipped, 0 for want of hardware, 0 for -short or -race\n" +
				"FAIL: GOCCL_REQUIRE=all allows no skipped test\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out strings.Builder
			r := reporter{out: &out, logs: map[test]*strings.Builder{}, short: tc.own, race: tc.own}
			require.NoError(t, r.read(0, strings.NewReader(tc.in)))
			require.Equal(t, tc.ok, r.verdict(tc.requireAll))
			require.Equal(t, tc.out, out.String())
		})
	}
}

// Two inputs with tests of one package: a crash in one of them says nothing of the other's tests.
func TestReadAll(t *testing.T) {
	dir := t.TempDir()
	var names []string
	for name, text := range map[string]string{
		"a": `{"Action":"output","Package":"p","Test":"TestA","Output":"panic: no\n"}
{"Action":"fail","Package":"p"}
`,
		"b": `{"Action":"output","Package":"p","Test":"TestB","Output":"fine\n"}
{"Action":"pass","Package":"p","Test":"TestB"}
`,
	} {
		names = append(names, filepath.Join(dir, name))
		require.NoError(t, os.WriteFile(names[len(names)-1], []byte(text), 0o666))
	}
	var out strings.Builder
	r := reporter{out: &out, logs: map[test]*strings.Builder{}}
	require.NoError(t, r.readAll(names))
	require.False(t, r.verdict(false))
	require.Equal(t, "panic: no\n1 tests passed, 1 failed, 0 skipped, 0 for want of hardware\n", out.String())
	require.ErrorIs(t, r.readAll([]string{filepath.Join(dir, "c")}), os.ErrNotExist)
}

// A run that says nothing for a while is told how many packages are left; one that has printed something is not.
func TestReminders(t *testing.T) {
	var out strings.Builder
	r := reporter{out: &out, logs: map[test]*strings.Builder{}, left: 3}
	r.remind()
	require.Equal(t, "3 packages left, 0 tests passed\n", out.String())
	out.Reset()
	require.NoError(t, r.read(0, strings.NewReader(`{"Action":"pass","Package":"p","Test":"TestA"}
{"Action":"output","Package":"p","Output":"ok p\n"}
{"Action":"pass","Package":"p"}
{"Action":"skip","Package":"q"}
`)))
	r.remind()
	require.Equal(t, "ok p\n", out.String())
	r.remind()
	require.Equal(t, "ok p\n1 package left, 1 tests passed\n", out.String())
	require.NoError(t, r.read(0, strings.NewReader(`{"Action":"fail","Package":"r"}`)))
	r.remind()
	require.Equal(t, "ok p\n1 package left, 1 tests passed\n", out.String(), "none is left")
}

// README's numbers are those of a run; a README that has no place for them is refused.
func TestRewrite(t *testing.T) {
	name := filepath.Join(t.TempDir(), "README.md")
	require.NoError(t, os.WriteFile(name, []byte("It takes 9 minutes on 4 cores.\n\n    12 tests passed, 0 failed\n"), 0o666))
	require.NoError(t, rewrite(name, "34 tests passed, 0 failed, 1 skipped", 250*time.Second, 2))
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.Equal(t, "It takes 5 minutes on 2 cores.\n\n    34 tests passed, 0 failed, 1 skipped\n", string(text))
	require.NoError(t, os.WriteFile(name, []byte("It takes long.\n"), 0o666))
	require.ErrorContains(t, rewrite(name, "34 tests passed", time.Minute, 2), "It takes 9 minutes on 2 cores")
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	require.Len(t, sumLine.FindAll(readme, -1), 1)
	require.Len(t, duration.FindAll(readme, -1), 1)
}
