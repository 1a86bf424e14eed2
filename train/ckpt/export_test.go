package ckpt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

// saved is a checkpoint of n ranks.
func saved(t *testing.T, n int) (dir string) {
	dir = Step(t.TempDir(), 1)
	ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
		require.NoError(t, Save(t.Context(), c, dir, "state", held(c.Rank(), n, true)))
	})
	return dir
}

// What an Export has left unfinished goes; what a user has named in the same manner stays.
func TestExportBeside(t *testing.T) {
	from, dir := saved(t, 1), t.TempDir()
	mine := []string{"hf.gone-", "hf.gone-wrong", "hf.tmp-", "hf.tmp-0-x", "hf.tmp-old", "hf.tmp-x-" + ending}
	for _, name := range append(slices.Clone(mine), "hf.tmp-0-"+ending, "hf.tmp-0-"+ending+".gone-"+ending) {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o777))
	}
	require.NoError(t, Export(from, filepath.Join(dir, "hf"), 0, nil))
	require.Equal(t, append([]string{"hf"}, mine...), names(t, dir))
}

// What is exported, in one file or several, is loaded again in any layout.
func TestExport(t *testing.T) {
	dir := saved(t, 3)
	for size, files := range map[int64][]string{
		0:       {modelName},
		1 << 20: {modelName},
		700:     {"model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors", modelIndexName},
		1:       {"model-00001-of-00003.safetensors", "model-00002-of-00003.safetensors", "model-00003-of-00003.safetensors", modelIndexName},
	} {
		to := filepath.Join(t.TempDir(), "hf")
		require.NoError(t, Export(dir, to, size, nil))
		require.Equal(t, files, names(t, to))
		again := filepath.Join(t.TempDir(), "again")
		require.NoError(t, Export(to, again, 0, nil), "an export of it")
		for _, from := range []string{to, again} {
			ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
				ts, state := held(c.Rank(), 2, false), "as it was"
				require.NoError(t, Load(t.Context(), c, from, &state, ts))
				require.Equal(t, held(c.Rank(), 2, true), ts)
				require.Equal(t, "as it was", state)
			})
		}
		if len(files) > 1 {
			var ix struct {
				Metadata map[string]int    `json:"metadata"`
				Where    map[string]string `json:"weight_map"`
			}
			text, err := os.ReadFile(filepath.Join(to, modelIndexName))
			require.NoError(t, err)
			require.NoError(t, json.Unmarshal(text, &ix))
			require.Equal(t, map[string]int{"total_size": 280 + 560 + 8}, ix.Metadata)
			require.Len(t, ix.Where, 3)
			require.Equal(t, files[0], ix.Where["m"])
		}
	}
}

func TestExportAs(t *testing.T) {
	dir := saved(t, 2)
	to := filepath.Join(t.TempDir(), "hf")
	require.NoError(t, Export(dir, to, 0, func(name string, shape []int) (string, []int) {
		if name == "m" {
			return "transformer.m.weight", []int{70}
		}
		return "", nil
	}))
	ccltest.Run(t, 1, func(t testing.TB, c *ccl.Comm) {
		m := make([]float32, 70)
		require.NoError(t, Load(t.Context(), c, to, nil, []Tensor{{Name: "transformer.m.weight", Shape: []int{70}, Data: m}}))
		require.Equal(t, held(0, 1, true)[0].Data, m)
		require.ErrorContains(t, Load(t.Context(), c, to, nil, []Tensor{{Name: "s", Data: make([]int64, 1)}}), `no tensor "s"`)
	})

	to = filepath.Join(t.TempDir(), "bad")
	for says, as := range map[string]func(string, []int) (string, []int){
		"nothing to export":         func(string, []int) (string, []int) { return "", nil },
		"cannot have shape [3]":     func(n string, _ []int) (string, []int) { return n, []int{3} },
		"would both be named":       func(_ string, s []int) (string, []int) { return "x", s },
		"reserves the name":         func(_ string, s []int) (string, []int) { return metadata, s },
		"has shape [-7 -10]":        func(n string, _ []int) (string, []int) { return n, []int{-7, -10} },
		`the name of tensor "\xff"`: func(_ string, s []int) (string, []int) { return "\xff", s },
	} {
		require.ErrorContains(t, Export(dir, to, 0, as), says)
	}
	require.ErrorContains(t, Export(filepath.Join(dir, "none"), to, 0, nil), indexName)
	require.ErrorContains(t, Export(dir, dir, 0, nil), "already exists")
	require.NoError(t, os.WriteFile(filepath.Join(dir, partName(0, 2)), nil, 0o666))
	require.ErrorContains(t, Export(dir, to, 0, nil), partName(0, 2)+" is truncated")
	require.NoDirExists(t, to)
	require.Empty(t, unfinished(t, to))
}

// A fault at any write, sync or rename leaves all of an export, or nothing but an error.
func TestExportFaults(t *testing.T) {
	dir := saved(t, 2)
	for at := 1; ; at++ {
		to, hit := filepath.Join(t.TempDir(), "hf"), ""
		err := nth(at, func(op, path string) error {
			hit = path
			return fmt.Errorf("%s %s: the disk is full", op, path)
		}).export(dir, to, modelName, 1, nil)
		if hit == "" {
			require.NoError(t, err)
			require.Greater(t, at, 10)
			return
		}
		require.ErrorContains(t, err, hit)
		require.Empty(t, unfinished(t, to))
		if _, err := os.Stat(to); err == nil {
			require.Len(t, names(t, to), 4)
		}
	}
}

// What a file of another program has wrong is an error on all ranks that names the file.
func TestForeignBad(t *testing.T) {
	head := func(text string) string { return stFile(text, 0) }
	for name, k := range map[string]struct {
		files map[string]string
		says  []string
	}{
		"empty":        {map[string]string{modelName: ""}, []string{modelName, "header's length"}},
		"long header":  {map[string]string{modelName: "\xff\xff\xff\xff\xff\xff\xff\x7f{}"}, []string{modelName, "at most"}},
		"beyond":       {map[string]string{modelName: "\x09\x00\x00\x00\x00\x00\x00\x00{}"}, []string{modelName, "at most"}},
		"no JSON":      {map[string]string{modelName: head("{")}, []string{modelName, "the header"}},
		"no object":    {map[string]string{modelName: head(`{"s":1}`)}, []string{modelName, `"s"`}},
		"type":         {map[string]string{modelName: head(`{"s":{"dtype":"X4","shape":[],"data_offsets":[0,0]}}`)}, []string{modelName, `"X4"`}},
		"outside":      {map[string]string{modelName: head(`{"s":{"dtype":"I64","shape":[],"data_offsets":[0,8]}}`)}, []string{modelName, "have 8 bytes, and the file has 0"}},
		"overflow":     {map[string]string{modelName: head(`{"s":{"dtype":"I64","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`)}, []string{modelName, "shape"}},
		"another":      {map[string]string{modelIndexName: `{"weight_map":{"s":"../s"}}`}, []string{modelIndexName, "../s"}},
		"no such":      {map[string]string{modelIndexName: `{"weight_map":{"s":"s.safetensors"}}`}, []string{"s.safetensors"}},
		"no map":       {map[string]string{modelIndexName: `[]`}, []string{modelIndexName}},
		"in two files": {map[string]string{modelIndexName: `{"weight_map":{"a":"1","b":"2"}}`, "1": head(`{"s":{"dtype":"I64","shape":[0],"data_offsets":[0,0]}}`), "2": head(`{"s":{"dtype":"I64","shape":[0],"data_offsets":[0,0]}}`)}, []string{`"s"`, "another file"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range k.files {
				require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
			}
			ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
				err := Load(t.Context(), c, dir, nil, []Tensor{{Name: "s", Data: make([]int64, 1)}})
				for _, s := range append(k.says, "rank 0") {
					require.ErrorContains(t, err, s)
				}
			})
		})
	}
}

// The parser of headers takes any file: it takes no more memory than the file has, and what it returns lies in it.
func FuzzHeader(f *testing.F) {
	es := []entry{{"a", "F32", []int{2, 3}}, {"b", "BF16", nil}}
	var seed bytes.Buffer
	require.NoError(f, newHeader(len(es), func(i int) entry { return es[i] }).write(&seed))
	f.Add(seed.Bytes(), 26)
	f.Add([]byte("\x02\x00\x00\x00\x00\x00\x00\x00{}"), 0)
	f.Fuzz(func(t *testing.T, head []byte, data int) {
		size := int64(len(head)) + int64(max(0, min(data, 1<<16))) // with data that nobody reads
		ps, _, err := parseHeader(bytes.NewReader(head), size)
		if err != nil {
			return
		}
		ix := &index{Tensors: map[string]tensor{}, Files: []file{{Name: "x", Size: size}}, Pieces: ps}
		for _, p := range ps {
			ix.Tensors[p.Name] = tensor{p.Type, p.Shape}
		}
		text, err := ix.text()
		require.NoError(t, err)
		_, err = parseIndex(bytes.NewReader(text))
		require.NoError(t, err, "what the header says is no index")
	})
}

func TestHeaderThatCannotBeRead(t *testing.T) {
	_, _, err := parseHeader(failing{strings.NewReader("\x02\x00\x00\x00\x00\x00\x00\x00{}")}, 10)
	require.ErrorContains(t, err, "bad sector")
}

// failing reads the first 8 bytes alone.
type failing struct{ io.ReaderAt }

func (f failing) ReadAt(b []byte, at int64) (int, error) {
	if at > 0 {
		return 0, errors.New("bad sector")
	}
	return f.ReaderAt.ReadAt(b, at)
}
