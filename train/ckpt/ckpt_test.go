package ckpt

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
)

var shape = []int{7, 10}

// held is what rank r of n has: a column block of m, a range of v, a whole replica of s.
func held(r, n int, fill bool) (ts []Tensor) {
	lo, hi := 10*r/n, 10*(r+1)/n
	m, v, s := make([]float32, 7*(hi-lo)), make([]float64, 70*(r+1)/n-70*r/n), []int64{0}
	if fill {
		for i := range m {
			m[i] = float32(i/(hi-lo)*10 + lo + i%(hi-lo))
		}
		for i := range v {
			v[i] = float64(70*r/n + i)
		}
		s[0] = 42
	}
	return []Tensor{
		{Name: "m", Shape: shape, Offset: []int{0, lo}, Size: []int{7, hi - lo}, Data: m},
		{Name: "v", Shape: shape, Lo: 70 * r / n, Hi: 70 * (r + 1) / n, Data: v},
		{Name: "s", Data: s},
	}
}

// What n ranks save, any number of ranks load.
func TestLayouts(t *testing.T) {
	for name, opts := range map[string][]ccltest.Option{"goroutines": nil, "hosts": {ccltest.Hosts(2)}} {
		for n := 1; n <= 4; n++ {
			t.Run(fmt.Sprintf("%s, %d ranks", name, n), func(t *testing.T) {
				if n == 1 && opts != nil {
					opts = nil
				}
				dir := t.TempDir()
				ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
					require.NoError(t, Save(t.Context(), c, Step(dir, n), n, held(c.Rank(), n, true)))
				}, opts...)
				for k := 1; k <= 4; k++ {
					ccltest.Run(t, k, func(t testing.TB, c *ccl.Comm) {
						from, _, err := Latest(t.Context(), c, dir)
						require.NoError(t, err)
						ts, step := held(c.Rank(), k, false), 0
						require.NoError(t, Load(t.Context(), c, from, &step, ts))
						require.Equal(t, n, step)
						require.Equal(t, held(c.Rank(), k, true), ts)
					})
				}
			})
		}
	}
}

// The index is read by one rank, and moves once: Load broadcasts as many bytes as it has.
func TestIndexMovesOnce(t *testing.T) {
	dir := Step(t.TempDir(), 1)
	ccltest.Run(t, 3, func(t testing.TB, c *ccl.Comm) {
		require.NoError(t, Save(t.Context(), c, dir, nil, held(c.Rank(), 3, true)))
		text, err := os.Stat(filepath.Join(dir, indexName))
		require.NoError(t, err)
		var moved []int
		d, err := c.SplitWith(t.Context(), 0, c.Rank(), func(o *ccl.Options) {
			o.OnCall = func(k ccl.Observation) {
				if k.Call.Kind == ccl.KindBroadcast && k.Call.Type == ccl.TypeUint8 {
					moved = append(moved, k.Bytes)
				}
			}
		})
		require.NoError(t, err)
		defer d.Close()
		require.NoError(t, Load(t.Context(), d, dir, nil, held(c.Rank(), 3, false)))
		require.Equal(t, []int{int(text.Size())}, moved)
	})
}

// A fault at any write, sync or rename, on any rank, is an error on all, and Latest is the old checkpoint or the new
// one, whole.
func TestFaults(t *testing.T) {
	const n = 2
	for k := range 2 * n {
		bad, direct := k/2, k%2 == 1
		for at := 0; ; at++ {
			dir, reached := t.TempDir(), false
			ccltest.Run(t, n, func(t testing.TB, c *ccl.Comm) {
				require.NoError(t, Save(t.Context(), c, Step(dir, 1), 1, held(c.Rank(), n, true)))
				d := nth(at+1, func(string, string) error {
					if c.Rank() != bad {
						return nil
					}
					reached = true
					return errors.New("the disk is full")
				})
				d.direct = direct
				err := save(t.Context(), c, d, Step(dir, 2), 2, held(c.Rank(), n, true))
				hit := []int{0}
				if c.Rank() == bad && reached {
					hit[0] = 1
				}
				require.NoError(t, ccl.Broadcast(t.Context(), c, hit, bad))
				if hit[0] == 1 {
					require.ErrorContains(t, err, fmt.Sprintf("rank %d: ", bad))
					require.ErrorContains(t, err, "the disk is full")
					require.NotContains(t, err.Error(), "another job")
				} else {
					require.NoError(t, err)
				}
				from, _, err := Latest(t.Context(), c, dir)
				require.NoError(t, err)
				ts, state := held(c.Rank(), n, false), 0
				require.NoError(t, Load(t.Context(), c, from, &state, ts))
				require.Equal(t, held(c.Rank(), n, true), ts)
				require.Equal(t, Step(dir, state), from, "the state is of that step")
				if hit[0] == 0 {
					require.Equal(t, 2, state)
				}
			})
			if !reached {
				require.GreaterOrEqual(t, at, 2, "a write and a sync at least")
				break
			}
		}
	}
}

// What is wrong with a checkpoint is an error on all ranks that names the tensor and the file.
func TestBad(t *testing.T) {
	part := partName(1, 2)
	cases := map[string]struct {
		spoil func(dir string) error
		ts    func(r int) []Tensor
		says  []string
	}{
		"missing":       {func(d string) error { return os.RemoveAll(d) }, nil, []string{indexName}},
		"no part":       {func(d string) error { return os.Remove(filepath.Join(d, part)) }, nil, []string{"tensor", part}},
		"truncated":     {func(d string) error { return os.Truncate(filepath.Join(d, part), 100) }, nil, []string{"tensor", part, "truncated"}},
		"damaged":       {func(d string) error { return flip(filepath.Join(d, part), -1) }, nil, []string{"tensor", part, "damaged"}},
		"damaged index": {func(d string) error { return flip(filepath.Join(d, indexName), 300) }, nil, []string{indexName, "damaged"}},
		"shape":         {nil, func(int) []Tensor { return []Tensor{{Name: "s", Shape: []int{2}, Data: make([]int64, 2)}} }, []string{`"s"`, indexName, "[2]"}},
		"type":          {nil, func(int) []Tensor { return []Tensor{{Name: "s", Data: make([]float32, 1)}} }, []string{`"s"`, indexName, "F32"}},
		"lacks":         {nil, func(int) []Tensor { return []Tensor{{Name: "x", Data: make([]float32, 1)}} }, []string{`"x"`, indexName}},
	}
	for name, k := range cases {
		t.Run(name, func(t *testing.T) {
			dir := Step(t.TempDir(), 1)
			ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
				require.NoError(t, Save(t.Context(), c, dir, nil, held(c.Rank(), 2, true)))
				if k.spoil != nil && c.Rank() == 0 {
					require.NoError(t, k.spoil(dir))
				}
				ccltest.Barrier(t, c)
				ts := held(c.Rank(), 2, false)
				if k.ts != nil {
					ts = k.ts(c.Rank())
				}
				err := Load(t.Context(), c, dir, nil, ts)
				for _, s := range k.says {
					require.ErrorContains(t, err, s)
				}
				require.ErrorContains(t, Save(t.Context(), c, filepath.Join(os.DevNull, "x"), nil, ts), "rank 0")
			})
		})
	}
}

// A name that one rank gives to two tensors is an error on all: one of them would be lost. Parts of one that do not
// overlap, and two places to load one tensor into, are none.
func TestNamedTwice(t *testing.T) {
	dir := t.TempDir()
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		ctx := t.Context()
		x := func(lo, hi int) Tensor {
			return Tensor{Name: "x", Shape: []int{4}, Lo: lo, Hi: hi, Data: []int{7, 8, 9, 10}[lo:hi]}
		}
		ts := []Tensor{x(0, 3), x(3, 4)}
		if c.Rank() == 1 {
			ts[1] = x(2, 4)
		}
		require.ErrorContains(t, Save(ctx, c, Step(dir, 1), nil, ts), `rank 1: tensor "x" is there twice: elements 0 to 3 and 2 to 4`)
		require.NoError(t, Save(ctx, c, Step(dir, 2), nil, []Tensor{x(0, 3), x(3, 4)}))
		a, b := make([]int, 4), make([]int, 4)
		require.NoError(t, Load(ctx, c, Step(dir, 2), nil, []Tensor{{Name: "x", Shape: []int{4}, Data: a}, {Name: "x", Shape: []int{4}, Data: b}}))
		require.Equal(t, []int{7, 8, 9, 10}, a)
		require.Equal(t, a, b)
	})
}

// A tensor of which no rank holds a part is not saved, on no rank, and nothing of it is left.
func TestSaveOfAPart(t *testing.T) {
	dir := Step(t.TempDir(), 1)
	ccltest.Run(t, 2, func(t testing.TB, c *ccl.Comm) {
		half := Tensor{Name: "w", Shape: []int{4, 2}, Offset: []int{0, 0}, Size: []int{4, 1}, Data: make([]float32, 4)}
		err := Save(t.Context(), c, dir, nil, []Tensor{half})
		require.ErrorContains(t, err, `tensor "w": no rank holds 4 of its 8 elements`)
		half.Offset = []int{0, c.Rank()}
		ccltest.Barrier(t, c)
		require.NoDirExists(t, dir)
		require.Empty(t, names(t, filepath.Dir(dir)))
		ccltest.Barrier(t, c)
		require.NoError(t, Save(t.Context(), c, dir, nil, []Tensor{half}))
	})
}

// The parser of the index takes any bytes.
func FuzzIndex(f *testing.F) {
	f.Add([]byte(`{"state":1,"tensors":{"a":{"type":"F32","shape":[2]}},"files":[{"name":"p","size":8,"crc32c":[1]}],"pieces":[{"name":"a","type":"F32","shape":[2],"offset":[0],"size":[2],"hi":2}]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		ix := &index{}
		_, _ = parseIndex(bytes.NewReader(body))
		if err := json.Unmarshal(body, ix); err != nil {
			return
		}
		text, err := ix.text()
		if err != nil {
			return
		}
		if got, err := parseIndex(bytes.NewReader(text)); err == nil {
			for _, p := range got.Pieces {
				_ = overlap(&p, &p)
			}
		}
	})
}
