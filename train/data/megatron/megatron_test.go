package megatron_test

import (
	"encoding/hex"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/train/data/megatron"
	"github.com/goccl/goccl/train/data/pack"
)

// The bytes are those that Megatron-LM's IndexedDatasetBuilder writes.
func TestBytes(t *testing.T) {
	for _, tc := range []struct {
		vocab    int
		bin, idx string
	}{
		{1000, "01000200 0300 e703",
			"4d4d494449445800 00 0100000000000000 08 0300000000000000 0300000000000000 02000000 01000000 01000000 0000000000000000 0400000000000000 0600000000000000 0000000000000000 0200000000000000 0300000000000000"},
		{65500, "0100000002000000 03000000 e7030000",
			"4d4d494449445800 00 0100000000000000 04 0300000000000000 0300000000000000 02000000 01000000 01000000 0000000000000000 0800000000000000 0c00000000000000 0000000000000000 0200000000000000 0300000000000000"},
	} {
		name := filepath.Join(t.TempDir(), "x")
		require.NoError(t, os.WriteFile(name+".idx", []byte("of another run"), 0o666))
		w, err := megatron.Create(name, tc.vocab)
		require.NoError(t, err)
		_, err = os.Stat(name + ".idx")
		require.ErrorIs(t, err, os.ErrNotExist)
		require.NoError(t, w.Add([]int32{1, 2}, []int32{3}))
		require.NoError(t, w.Add([]int32{999}))
		require.NoError(t, w.Close())
		require.EqualError(t, w.Add([]int32{1}), "data/megatron: the Writer is closed")
		for ext, want := range map[string]string{".bin": tc.bin, ".idx": tc.idx} {
			got, err := os.ReadFile(name + ext)
			require.NoError(t, err)
			require.Equal(t, strings.ReplaceAll(want, " ", ""), hex.EncodeToString(got))
		}
		d, err := megatron.Open(name)
		require.NoError(t, err)
		require.Equal(t, []int{2, 1, 1}, d.Lengths())
		require.Equal(t, []int{0, 2, 3}, d.Documents())
		for i, want := range [][]int32{{1, 2}, {3}, {999}} {
			got, err := d.Sequence(i)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
		for _, i := range []int{-1, 3} {
			_, err = d.Sequence(i)
			require.EqualError(t, err, fmt.Sprintf("data/megatron: %s: sequence %d of 3", name, i))
		}
		require.NoError(t, d.Close())
	}
}

// What Python has written is read. MEGATRON_TEST_DIR has datasets of each type, of test/text/indexed.py: in each, sequence
// i of 5 has the tokens i, i+1, .. of which there are 7*i, and two documents.
func TestPython(t *testing.T) {
	dir := os.Getenv("MEGATRON_TEST_DIR")
	if dir == "" {
		dir = "testdata"
	}
	names, err := filepath.Glob(filepath.Join(dir, "*.idx"))
	require.NoError(t, err)
	require.NotEmpty(t, names)
	for _, name := range names {
		d, err := megatron.Open(strings.TrimSuffix(name, ".idx"))
		require.NoError(t, err)
		require.Equal(t, []int{0, 7, 14, 21, 28}, d.Lengths())
		require.Equal(t, []int{0, 2, 5}, d.Documents())
		for i := range 5 {
			var want []int32
			for k := range 7 * i {
				want = append(want, int32(i+k))
			}
			got, err := d.Sequence(i)
			require.NoError(t, err)
			require.Equal(t, append([]int32{}, want...), got, name)
		}
		require.NoError(t, d.Close())
	}
}

func dataset(t testing.TB, dir string, bin, idx []byte) (*megatron.Dataset, error) {
	name := filepath.Join(dir, "x")
	require.NoError(t, os.WriteFile(name+".bin", bin, 0o666))
	require.NoError(t, os.WriteFile(name+".idx", idx, 0o666))
	d, err := megatron.Open(name)
	if err != nil {
		err = fmt.Errorf("%s", strings.ReplaceAll(err.Error(), name, "x"))
	}
	return d, err
}

func TestErrors(t *testing.T) {
	good, err := hex.DecodeString("4d4d4944494458000001000000000000000801000000000000000200000000000000020000000000000000000000" + "00000000000000000100000000000000")
	require.NoError(t, err)
	d, err := dataset(t, t.TempDir(), []byte{1, 0, 2, 0}, good)
	require.NoError(t, err)
	require.NoError(t, d.Close())
	for _, tc := range []struct {
		at   int
		to   byte
		want string
	}{
		{0, 'X', "it does not begin as an index does"},
		{9, 2, "it is of version 2, and 1 is read"},
		{17, 7, "its type has the code 7: tokens must be integers"},
		{17, 9, "its type has the code 9: tokens must be integers"},
		{18, 9, "it says that there are 9 sequences and 2 bounds of documents, which its 62 bytes have no room for"},
		{25, 0xff, "it says that there are 18374686479671623681 sequences and 2 bounds of documents, which its 62 bytes have no room for"},
		{33, 0xff, "it says that there are 1 sequences and 18374686479671623682 bounds of documents, which its 62 bytes have no room for"},
		{34, 3, "sequence 0 has 3 tokens at byte 0, and x.bin has 4 bytes"},
		{37, 0xff, "sequence 0 has -16777214 tokens at byte 0, and x.bin has 4 bytes"},
		{38, 1, "sequence 0 has 2 tokens at byte 1, and x.bin has 4 bytes"},
		{45, 0xff, "sequence 0 has 2 tokens at byte -72057594037927936, and x.bin has 4 bytes"},
		{46, 1, "document 0 begins with sequence 1 of 1"},
		{54, 2, "document 1 begins with sequence 2 of 1"},
	} {
		bad := append([]byte{}, good...)
		bad[tc.at] = tc.to
		_, err := dataset(t, t.TempDir(), []byte{1, 0, 2, 0}, bad)
		require.EqualError(t, err, "data/megatron: x.idx: "+tc.want)
	}
	none := append([]byte{}, good[:46]...)
	none[26] = 0
	_, err = dataset(t, t.TempDir(), []byte{1, 0, 2, 0}, none)
	require.EqualError(t, err, "data/megatron: x.idx: it has no bounds of documents, and the first is always there")
	_, err = dataset(t, t.TempDir(), nil, good[:20])
	require.EqualError(t, err, "data/megatron: x.idx: it does not begin as an index does")
	_, err = megatron.Open(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)

	name := filepath.Join(t.TempDir(), "x")
	for _, x := range []int32{-1, math.MaxUint16 + 1} {
		w, err := megatron.Create(name, 100)
		require.NoError(t, err)
		want := fmt.Sprintf("data/megatron: %s.bin: the token %d does not fit into 2 bytes", name, x)
		require.EqualError(t, w.Add([]int32{x}), want)
		require.EqualError(t, w.Add([]int32{1}), want)
		require.EqualError(t, w.Close(), want)
		_, err = os.Stat(name + ".idx")
		require.ErrorIs(t, err, os.ErrNotExist, "no index tells of half a dataset")
	}
	_, err = megatron.Create(filepath.Join(t.TempDir(), "no", "x"), 1)
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Tokens that are written anew while they are read are those of another dataset.
func TestChanged(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x")
	write := func(tokens ...int32) {
		w, err := megatron.Create(name, 100)
		require.NoError(t, err)
		require.NoError(t, w.Add(tokens))
		require.NoError(t, w.Close())
	}
	write(1, 2, 3)
	d, err := megatron.Open(name)
	require.NoError(t, err)
	defer d.Close()
	write(4, 5, 6)
	require.NoError(t, os.Chtimes(name+".bin", time.Time{}, time.Unix(1, 0))) // the clock of files may stand still meanwhile
	_, err = d.Sequence(0)
	require.EqualError(t, err, "data/megatron: "+name+".bin: sequence 0: the file was changed or replaced while it was in use")
}

// An index from outside is an error, or all its sequences can be read.
func FuzzOpen(f *testing.F) {
	names, err := filepath.Glob("testdata/*.idx")
	require.NoError(f, err)
	for _, name := range names {
		idx, err := os.ReadFile(name)
		require.NoError(f, err)
		bin, err := os.ReadFile(strings.TrimSuffix(name, "idx") + "bin")
		require.NoError(f, err)
		f.Add(bin, idx)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, bin, idx []byte) {
		d, err := dataset(t, dir, bin, idx)
		if err != nil {
			return
		}
		defer d.Close()
		for i, n := range d.Lengths() {
			if tokens, err := d.Sequence(i); err == nil {
				require.Len(t, tokens, n)
			}
		}
	})
}

func Example() {
	dir, err := os.MkdirTemp("", "megatron")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	name := filepath.Join(dir, "train")
	w, err := megatron.Create(name, 50257)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, doc := range [][]int32{{5, 6, 7}, {8, 9}} {
		if err := w.Add(doc); err != nil {
			fmt.Println(err)
			return
		}
	}
	if err := w.Close(); err != nil {
		fmt.Println(err)
		return
	}
	d, err := megatron.Open(name)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer d.Close()
	p, err := pack.New(d.Lengths(), 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	var r pack.Row
	if err := p.Fill(0, &r, d.Sequence); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Tokens, r.Targets)
	// Output: [5 6 8] [6 7 9]
}
