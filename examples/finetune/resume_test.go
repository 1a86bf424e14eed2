//go:build xla && cgo && linux

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	"github.com/goccl/goccl/internal/xlatest"
)

// place is a directory with copies of the model and the data, by several names.
type place struct {
	t   *testing.T
	dir string
}

func copies(t *testing.T) place {
	p := place{t, t.TempDir()}
	for _, name := range []string{"base", "moved", "theta", "words"} {
		require.NoError(t, os.CopyFS(p.at(name), os.DirFS("testdata/tiny")))
	}
	text, err := os.ReadFile("testdata/train.jsonl")
	require.NoError(t, err)
	for _, name := range []string{"data", "copy", "other"} {
		require.NoError(t, os.WriteFile(p.at(name), text, 0o666))
	}
	p.edit("theta/config.json", `"rope_theta": 10000.0`, `"rope_theta": 5000.0`)
	p.edit("words/tokenizer.json", "{", "{ ")
	p.edit("other", "plus", "PLUS")
	return p
}

func (p place) at(name string) string { return filepath.Join(p.dir, name) }

func (p place) edit(name, old, now string) {
	text, err := os.ReadFile(p.at(name))
	require.NoError(p.t, err)
	require.Contains(p.t, string(text), old)
	require.NoError(p.t, os.WriteFile(p.at(name), bytes.Replace(text, []byte(old), []byte(now), 1), 0o666))
}

// parse parses flags, in which DIR is the directory.
func (p place) parse(args string) *config {
	list := strings.Fields("-model DIR/base -data DIR/data -context 32 " + args)
	for i := range list {
		list[i] = strings.Replace(list[i], "DIR", p.dir, 1)
	}
	c, err := parse(list, io.Discard)
	require.NoError(p.t, err)
	return c
}

// A run goes on with the model, the data and the adapters that it was begun with, wherever they lie now. With others
// it is refused, and told what the two were given.
func TestResumes(t *testing.T) {
	p := copies(t)
	of := func(args string) *tuner {
		x := &tuner{c: p.parse(args)}
		ccltest.Run(t, 1, func(t testing.TB, world *ccl.Comm) {
			var err error
			x.world = world
			x.begun, err = x.settings(t.Context())
			require.NoError(t, err)
		})
		return x
	}
	begun, err := json.Marshal(of("").begun)
	require.NoError(t, err)
	for _, tc := range []struct{ args, were, are string }{
		{"-model DIR/theta", "-model=DIR/base", "-model=DIR/theta"},
		{"-model DIR/words", "-model=DIR/base", "-model=DIR/words"},
		{"-data DIR/other", "-data=DIR/data", "-data=DIR/other"},
		{"-rank 4 -alpha 8", "-rank=8 -alpha=16", "-rank=4 -alpha=8"},
		{"-lora q_proj,v_proj", "-lora=all-linear", "-lora=q_proj,v_proj"},
		{"-lora=", "-lora=all-linear", "-lora="},
		{"-rslora -dropout .1", "-rslora=false -dropout=0", "-rslora=true -dropout=0.1"},
		{"-base bf16", "-base=f32", "-base=bf16"},
		{"-kind text", "-kind=completion", "-kind=text"},
		{"-rows 4 -context 16 -seed 2", "-rows=8 -context=32 -seed=1", "-rows=4 -context=16 -seed=2"},
		{"-model DIR/moved -data DIR/copy -steps 9 -lr 1 -zero 3 -micro 2 -held DIR/other", "", ""},
	} {
		err := of(tc.args).resumes("saved", begun)
		if tc.were == "" {
			require.NoError(t, err, tc.args)
			continue
		}
		require.EqualError(t, err, strings.ReplaceAll("saved was begun with "+tc.were+", and -resume is given "+tc.are+
			": give what it was begun with, or begin another run in another directory", "DIR", p.dir), tc.args)
	}
	p.edit("data", "plus", "PLUS")
	require.ErrorContains(t, of("").resumes("saved", begun), "is given -data="+p.at("data")+" (changed since then): ")
	require.EqualError(t, of("").resumes("saved", []byte(`{"Rows":8}`)), "saved is no checkpoint of this finetune: it has other settings")
}

// What is said is what the flags say, although the tensors of other adapters have other shapes.
func TestResumesElsewhere(t *testing.T) {
	p := copies(t)
	run := func(args string) (said string, err error) {
		c := p.parse("-lora q_proj -save DIR/saved -log 1 -options cpu_device_count=1 -plugin " + xlatest.Path(t) + " " + args)
		ccltest.Run(t, 1, func(t testing.TB, world *ccl.Comm) {
			var out bytes.Buffer
			err = tune(t.Context(), world, c, &out)
			said = out.String()
		}, ccltest.Deadline(3*time.Minute))
		return said, err
	}
	_, err := run("-steps 1")
	require.NoError(t, err)
	_, err = run("-steps 2 -resume -rank 4")
	require.ErrorContains(t, err, p.at("saved/step-00000001")+" was begun with -rank=8, and -resume is given -rank=4: ")
	said, err := run("-steps 2 -resume -model DIR/moved -data DIR/copy")
	require.NoError(t, err)
	require.Contains(t, said, "resumed from step 1")
}

// Weights are told apart by a part of them, all other files by each byte.
func TestSumModel(t *testing.T) {
	const size = 1024*piece*4 + 77
	weights := make([]byte, size)
	of := func(config string) string {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o666))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "README.md"), []byte(dir), 0o666))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "model.safetensors"), weights, 0o666))
		s, err := sumModel(dir)
		require.NoError(t, err)
		return s
	}
	base := of("{}")
	require.Equal(t, base, of("{}"))
	require.NotEqual(t, base, of("[]"))
	weights[size/1024*1023+9] = 1
	require.NotEqual(t, base, of("{}"))
	weights[size/1024*1023+9] = 0
	weights = weights[:size-1]
	require.NotEqual(t, base, of("{}"))
}
