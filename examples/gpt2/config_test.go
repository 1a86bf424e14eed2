package main

import (
	"bytes"
	"encoding/binary"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/train/fit"
	"github.com/goccl/goccl/xla/hlo"
)

func TestParseErrors(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"-no", "flag provided but not defined: -no (-h lists the flags)"},
		{"x", `"x" is not a flag (-h lists the flags)`},
		{"-preset large", "-preset large: no such model; there are tiny, char and gpt2"},
		{"-np 0", "-np 0: it must be at least 1"},
		{"-layers 0", "-layers 0: it must be at least 1"},
		{"-vocab 1", "-vocab 1: it must be at least 2"},
		{"-log 0", "-log 0: it must be at least 1"},
		{"-zero 4", "-zero 4: the stages are 0 to 3"},
		{"-lr NaN", "-lr NaN -clip 1: -lr must be greater than 0, -clip at least 0, and both must be finite"},
		{"-clip -1", "-lr 0.0006 -clip -1: -lr must be greater than 0"},
		{"-heads 3", "-heads 3 does not divide -width 128"},
		{"-width 80 -heads 2", "-width 80: it must be a multiple of 32"},
		{"-attn flash", "-attn flash: there are softmax and cudnn"},
		{"-attn cudnn", "-attn cudnn: it needs -bf16, and heads of 64 or 128 elements; these have 32"},
		{"-attn cudnn -bf16", "-attn cudnn: it needs -bf16"},
		{"-residual bf16", "-residual bf16: there are f32, and bf16 with -bf16"},
		{"-residual f16 -bf16", "-residual f16: there are f32"},
		{"-np 3", "-rows 8 does not divide among 3 ranks x -micro 1; -rows 9 does"},
		{"-np 2 -micro 3", "-rows 8 does not divide among 2 ranks x -micro 3; -rows 6 does"},
		{"-every 10", "-every and -resume need -save"},
		{"-resume", "-every and -resume need -save"},
		{"-offload", "-offload needs -zero 1, 2 or 3, or -parts"},
		{"-recover", "-recover needs -save and -every: checkpoints to go on from"},
		{"-recover -save x", "-recover needs -save and -every"},
		{"-save x -every 15", "-every 15: it must be a multiple of -log 10"},
		{"-save x -keep 0", "-keep 0: it must be at least 1"},
		{"-device -2", "-device -2: devices count from 0"},
		{"-np 2 -export x", "-export is for one rank"},
	} {
		t.Run(tc.args, func(t *testing.T) {
			_, err := parse(strings.Fields(tc.args), io.Discard)
			require.ErrorContains(t, err, tc.want)
		})
	}
}

func TestParse(t *testing.T) {
	c, err := parse(strings.Fields("-preset gpt2 -bf16 -np 4 -rows 32 -micro 2"), io.Discard)
	require.NoError(t, err)
	require.Equal(t, 124_373_760, c.count())
	require.Equal(t, 4, c.Fit.Rows)
	require.Equal(t, hlo.BF16, c.network().Act)
	require.Equal(t, hlo.F32, c.network().Res)
	require.True(t, c.fits())
	require.InDelta(t, 854.7e6, c.flops(), 0.1e6) // nanoGPT's estimate_mfu
	require.InDelta(t, 6e-4, c.Rate(1), 0)
	var help bytes.Buffer
	_, err = parse([]string{"-h"}, &help)
	require.ErrorIs(t, err, flag.ErrHelp)
	f := flag.NewFlagSet("", flag.ContinueOnError)
	for _, g := range groups {
		for _, name := range g[1:] {
			require.Contains(t, help.String(), "\n  -"+name+" ")
			require.Nil(t, f.Lookup(name))
		}
	}
}

// Rows are the same whoever asks for them: a rank's micro batches are parts of one rank's batch.
func TestRows(t *testing.T) {
	c, err := parse([]string{"-preset", "tiny", "-np", "1"}, io.Discard)
	require.NoError(t, err)
	one, err := newSource(c)
	require.NoError(t, err)
	all := func(s *source, step, ranks int) (list []fit.Batch) {
		for rank := range ranks {
			part, err := s.batches(step, rank)
			require.NoError(t, err)
			list = append(list, part...)
		}
		return list
	}
	want := all(one, 3, 1)[0]
	require.Len(t, want.Tokens, 8*32)
	require.Equal(t, want.Tokens[1:32], want.Wanted[:31])
	d := *c
	d.Fit.Micro = 2
	require.NoError(t, d.Place(2))
	var got fit.Batch
	for _, b := range all(&source{c: &d}, 3, 2) {
		require.Len(t, b.Tokens, 2*32)
		got.Tokens, got.Wanted = append(got.Tokens, b.Tokens...), append(got.Wanted, b.Wanted...)
	}
	require.Equal(t, want, got)
	require.NotEqual(t, want, all(one, 4, 1)[0])
	for _, x := range want.Tokens {
		require.Less(t, x, int32(256))
	}
}

func TestData(t *testing.T) {
	c, err := parse([]string{"-preset", "tiny", "-np", "1"}, io.Discard)
	require.NoError(t, err)
	dir := t.TempDir()
	text := strings.Repeat("to be or not to be ", 10)
	write := func(name string, b []byte) string {
		file := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(file, b, 0o600))
		return file
	}
	tokens := make([]byte, 2*100)
	binary.LittleEndian.PutUint16(tokens[2*60:], 300)
	for _, tc := range []struct{ file, want string }{
		{write("a.txt", []byte(text)), ""},
		{write("short.txt", []byte("to be")), "has 5 tokens: a row takes 33"},
		{write("a.bin", tokens), "token 60 is 300, but -vocab is 256"},
		{write("b.bin", make([]byte, 200)), ""},
		{write("cut.bin", make([]byte, 201)), "cut.bin has 201 bytes: tokens have two each"},
		{filepath.Join(dir, "none"), "no such file"},
	} {
		c.data = tc.file
		s, err := newSource(c)
		if tc.want != "" {
			require.ErrorContains(t, err, tc.want)
			continue
		}
		require.NoError(t, err)
		row := s.row(nil, 1, 2)
		require.Len(t, row, 33)
		if strings.HasSuffix(tc.file, ".txt") {
			var b strings.Builder
			for _, x := range row {
				b.WriteByte(byte(x))
			}
			require.Contains(t, text, b.String())
		}
	}
}

// A file of -export has the parameters and the tokens one behind the other.
func TestExport(t *testing.T) {
	file := filepath.Join(t.TempDir(), "same")
	c, err := parse([]string{"-preset", "tiny", "-np", "1", "-steps", "2", "-export", file}, io.Discard)
	require.NoError(t, err)
	rows, err := newSource(c)
	require.NoError(t, err)
	require.NoError(t, export(c, rows))
	f, err := os.Open(file)
	require.NoError(t, err)
	defer f.Close()
	for i, p := range c.params() {
		got := make([]float32, p.Len())
		require.NoError(t, binary.Read(f, binary.LittleEndian, got))
		require.Equal(t, c.initial(i, p), got, p.Name)
	}
	for step := 1; step <= 2; step++ {
		got := make([]int32, 8*33)
		require.NoError(t, binary.Read(f, binary.LittleEndian, got))
		var want []int32
		for r := range 8 {
			want = rows.row(want, step, r)
		}
		require.Equal(t, want, got)
	}
	_, err = f.Read(make([]byte, 1))
	require.ErrorIs(t, err, io.EOF)
}
