package ckpt

import (
	"bytes"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// envelope is what an index stands in.
type envelope struct {
	Format string          `json:"format"`
	Sum    uint32          `json:"crc32c"` // of index
	Index  json.RawMessage `json:"index"`
}

// writeIndex writes an index with a checksum that matches, as whoever makes one up can.
func writeIndex(t testing.TB, dir, body string) {
	t.Helper()
	var compact bytes.Buffer
	require.NoError(t, json.Compact(&compact, []byte(body)))
	text, err := json.Marshal(envelope{format, crc32.Checksum(compact.Bytes(), castagnoli), compact.Bytes()})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, indexName), text, 0o666))
}

// allocated is how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// An index that describes more than its files have is refused, by Load and by Export, before memory is taken for it.
func TestIndexThatLies(t *testing.T) {
	const rows = 20_000
	c := alone(t)
	piece := func(name string, n int64, at int) string {
		return fmt.Sprintf(`{"name":%q,"type":"I8","shape":[%d],"offset":[0],"size":[%d],"lo":0,"hi":%d,"file":0,"at":%d}`, name, n, n, n, at)
	}
	tensor := func(name string, n int64) string { return fmt.Sprintf(`%q:{"type":"I8","shape":[%d]}`, name, n) }
	for name, tc := range map[string]struct {
		tensors, size, pieces string
		want                  []Tensor
		says                  string
	}{
		"a file of an exabyte": {tensor("t", 1<<60), "4611686018427387904", piece("t", 1<<60, 0), nil, "truncated"},
		"a file of a terabyte": {tensor("t", 1<<40), "1099511627776", piece("t", 1<<40, 0), nil, "truncated"},
		"a hundred times the same column": {fmt.Sprintf(`"t":{"type":"I8","shape":[%d,2]}`, rows), fmt.Sprint(2 * rows),
			strings.TrimSuffix(strings.Repeat(fmt.Sprintf(`{"name":"t","type":"I8","shape":[%d,2],"offset":[0,0],"size":[%d,1],"lo":0,"hi":%d,"file":0,"at":0},`, rows, rows, rows), 100), ","),
			[]Tensor{{Name: "t", Shape: []int{rows, 2}, Data: make([]int8, 2*rows)}}, `pieces of tensor "t" overlap`},
		"two tensors in the same bytes": {tensor("a", 8) + "," + tensor("b", 8), "12", piece("a", 8, 0) + "," + piece("b", 8, 4), nil, `tensors "a" and "b" overlap in a file`},
		"a hundred tensors of one file": {tensor("a", 1<<20), fmt.Sprint(1 << 20), piece("a", 1<<20, 0) + strings.Repeat(","+piece("a", 1<<20, 0), 99), nil, `pieces of tensor "a" overlap`},
		"a name that a terminal obeys":  {tensor("a", 1), "1", piece("a", 1, 0), nil, `\x1b`},
		"a sequence beyond all":         {tensor("a", 1), "1", piece("a", 1, 0), nil, "sequence"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			file, sequence := `x`, "0"
			if strings.Contains(name, "terminal") {
				file = `x\u001b[2J`
			}
			if strings.Contains(name, "sequence") {
				sequence = fmt.Sprint(int64(maxSequence))
			}
			require.NoError(t, os.WriteFile(filepath.Join(dir, "x"), make([]byte, 2*rows), 0o666))
			writeIndex(t, dir, fmt.Sprintf(`{"sequence":%s,"state":null,"tensors":{%s},"files":[{"name":"%s","size":%s,"crc32c":null}],"pieces":[%s]}`,
				sequence, tc.tensors, file, tc.size, tc.pieces))
			want := tc.want
			if want == nil {
				want = []Tensor{{Name: "t", Shape: []int{2}, Data: make([]int8, 2)}}
			}
			var exported, loaded, looked error
			n := allocated(func() {
				exported = Export(dir, filepath.Join(t.TempDir(), "x"), 0, nil)
				loaded = Load(t.Context(), c, dir, nil, want)
				looked = whole(folder(dir))
			})
			require.ErrorContains(t, exported, tc.says)
			require.Error(t, loaded)
			require.ErrorContains(t, looked, tc.says)
			require.Less(t, n, uint64(8<<20), "bytes that were allocated")
			require.NotContains(t, exported.Error(), "\x1b")
		})
	}
}

// An index that is no file, or that is too long, is refused before it is read.
func TestIndexThatIsNoFile(t *testing.T) {
	c := alone(t)
	for name, tc := range map[string]struct {
		make func(name string) error
		says string
	}{
		"a directory":         {func(name string) error { return os.Mkdir(name, 0o777) }, "is not a regular file"},
		"a link to a device":  {func(name string) error { return os.Symlink("/dev/zero", name) }, "is not a regular file"},
		"a link to a pipe":    {func(name string) error { return linkToPipe(name) }, "is not a regular file"},
		"longer than any one": {func(name string) error { return sparse(name, maxIndex+1) }, "more than the"},
	} {
		for _, file := range []string{indexName, modelIndexName, modelName} {
			if runtime.GOOS == "windows" || file == modelName && strings.HasPrefix(name, "longer") {
				continue
			}
			t.Run(name+" as "+file, func(t *testing.T) {
				dir := t.TempDir()
				require.NoError(t, tc.make(filepath.Join(dir, file)))
				ts := []Tensor{{Name: "t", Shape: []int{2}, Data: make([]int8, 2)}}
				n := allocated(func() {
					require.ErrorContains(t, Load(t.Context(), c, dir, nil, ts), tc.says)
					require.ErrorContains(t, Export(dir, dir+"x", 0, nil), tc.says)
				})
				require.Less(t, n, uint64(1<<20))
			})
		}
	}
}

func sparse(name string, size int64) error {
	if err := os.WriteFile(name, nil, 0o666); err != nil {
		return err
	}
	return os.Truncate(name, size)
}

// A part that is a pipe is not waited for.
func TestPartThatIsNoFile(t *testing.T) {
	if runtime.GOOS == "windows" {
		return // which has no such names
	}
	dir, c := saved(t, 1), alone(t)
	part := filepath.Join(dir, partName(0, 1))
	require.NoError(t, os.Remove(part))
	require.NoError(t, linkToPipe(part))
	require.ErrorContains(t, Load(t.Context(), c, dir, nil, held(0, 1, false)), "is not a regular file")
}

// Saving is linear in the number of tensors, and so is exporting: what is done for one does not depend on how many there are.
func TestManyTensors(t *testing.T) {
	c, dir := alone(t), t.TempDir()
	perTensor := func(n int) (save, export float64) {
		var ts []Tensor
		for i := range n {
			ts = append(ts, Tensor{Name: fmt.Sprintf("layers.%d.experts.%d.weight", i/256, i%256), Shape: []int{2}, Data: []float32{float32(i), 2}})
		}
		to := filepath.Join(dir, fmt.Sprint(n))
		a := allocated(func() { require.NoError(t, Save(t.Context(), c, to, nil, ts)) })
		b := allocated(func() { require.NoError(t, Export(to, to+"x", 0, nil)) })
		got := []Tensor{{Name: ts[n-1].Name, Shape: []int{2}, Data: make([]float32, 2)}}
		for _, from := range []string{to, to + "x"} {
			require.NoError(t, Load(t.Context(), c, from, nil, got))
			require.Equal(t, []float32{float32(n - 1), 2}, got[0].Data)
		}
		return float64(a) / float64(n), float64(b) / float64(n)
	}
	s1, e1 := perTensor(2000)
	s2, e2 := perTensor(8000)
	require.Less(t, s2, 1.5*s1, "bytes a tensor, %v of 2,000 and %v of 8,000", s1, s2)
	require.Less(t, e2, 1.5*e1)
}

// What another program has written leaves the state as it is, whatever that is.
func TestStateOfOthers(t *testing.T) {
	dir, c := filepath.Join(t.TempDir(), "hf"), alone(t)
	require.NoError(t, Export(saved(t, 1), dir, 0, nil))
	ts := held(0, 1, false)
	m, s, p := map[string]any{"lr": .1}, []int{1, 2}, &struct{ Step int }{7}
	var a any = 3
	for _, state := range []any{&m, &s, &p, &a} {
		require.NoError(t, Load(t.Context(), c, dir, state, ts))
	}
	require.Equal(t, []any{map[string]any{"lr": .1}, []int{1, 2}, &struct{ Step int }{7}, 3}, []any{m, s, p, a})
	require.ErrorContains(t, Load(t.Context(), c, dir, nil, []Tensor{{Name: "none", Data: []int8{1}}}), filepath.Join(dir, modelName)+` has no tensor "none"`,
		"the file that is there is named")
	var c2 *ccl.Comm
	require.Error(t, Load(t.Context(), c2, dir, nil, ts))
}

// An index is written as json.Marshal would write it.
func TestIndexText(t *testing.T) {
	ix := &index{Sequence: 3, State: json.RawMessage(`{"a":"<b>"}`), Tensors: map[string]tensor{"<a>&\u2028": {"F32", []int{1}}, "b": {"I8", nil}},
		Files: []file{{"p", 5, []uint32{1, 2}}}, Pieces: []piece{{Name: "b", Type: "I8", Hi: 1}, {Name: "<a>&\u2028", Type: "F32", Shape: []int{1}, At: 1}},
		Own: []span{{5, 0}}, From: "x", Others: map[string]other{"o": {"F4", []uint64{2}}}}
	text, err := ix.text()
	require.NoError(t, err)
	var e envelope
	require.NoError(t, json.Unmarshal(text, &e))
	want, err := json.Marshal(e)
	require.NoError(t, err)
	require.Equal(t, string(want), string(text))
	body, err := json.Marshal(ix)
	require.NoError(t, err)
	require.Equal(t, string(body), string(e.Index))
	again, err := readIndexFrom(iotest.OneByteReader(bytes.NewReader(text)))
	require.NoError(t, err)
	ix.State = json.RawMessage(`{"a":"\u003cb\u003e"}`)
	require.Equal(t, ix, again)
	require.Regexp(t, begins, string(text))
}
