package pt

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/train/ckpt/internal/pickle"
)

// counted are the bytes 1 to n.
func counted(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i + 1)
	}
	return b
}

// ofAll is a tensor of each type, and of some shapes.
func ofAll() (vs []Value) {
	for _, t := range types {
		n := 6 * t.size
		if t.name == "BOOL" {
			vs = append(vs, Value{Tensor{t.name, t.name, []int{2, 3}}, []byte{0, 1, 1, 0, 1, 0}})
			continue
		}
		vs = append(vs, Value{Tensor{t.name, t.name, []int{2, 3}}, counted(n)})
	}
	return append(vs, Value{Tensor{"a number", "F32", []int{}}, counted(4)}, Value{Tensor{"none", "I64", []int{0, 5}}, []byte{}})
}

// all are the tensors of a Set, read.
func all(t *testing.T, s *Set) map[string]Value {
	got := map[string]Value{}
	for _, x := range s.Tensors() {
		b := make([]byte, pickle.Count(x.Shape)*typed(x.Type))
		require.NoError(t, s.Read(x.Name, b), x.Name)
		got[x.Name] = Value{x, b}
	}
	return got
}

func named(vs []Value) map[string]Value {
	m := map[string]Value{}
	for _, v := range vs {
		m[v.Name] = v
	}
	return m
}

func TestWritten(t *testing.T) {
	name, dir := filepath.Join(t.TempDir(), "x.pt"), filepath.Join(t.TempDir(), "dcp")
	require.NoError(t, Write(name, ofAll()))
	require.ErrorIs(t, Write(name, ofAll()), os.ErrExist)
	require.NoError(t, WriteDCP(dir, ofAll()))
	require.ErrorIs(t, WriteDCP(dir, ofAll()), os.ErrExist)
	for _, open := range []func() (*Set, error){func() (*Set, error) { return Open(name) }, func() (*Set, error) { return OpenDCP(dir) }} {
		s, err := open()
		require.NoError(t, err)
		require.Equal(t, named(ofAll()), all(t, s))
		require.ErrorContains(t, s.Read("F32", make([]byte, 5)), "the memory has 5 bytes")
		require.ErrorContains(t, s.Read("x", nil), `no tensor "x"`)
		require.NoError(t, s.Close())
	}
	left, err := filepath.Glob(filepath.Join(filepath.Dir(name), "*"))
	require.NoError(t, err)
	require.Equal(t, []string{name}, left)
	for _, bad := range []Value{{Tensor{"x", "F32", []int{2}}, counted(7)}, {Tensor{"x", "X", []int{2}}, counted(2)}, {Tensor{"", "U8", []int{2}}, counted(2)},
		{Tensor{"x", "U8", []int{-1}}, nil}, {Tensor{"x", "U8", []int{1 << 32, 1 << 32}}, nil}} {
		require.Error(t, Write(name+"2", []Value{bad}))
	}
	require.ErrorContains(t, Write(name+"2", append(ofAll(), ofAll()...)), "two tensors are called")
}

// tensor is the call that makes a tensor of storage 0.
func tensor(class string, elements, at int, size, stride []int) *pickle.Object {
	return pickle.Called("torch._utils", "_rebuild_tensor_v2", &pickle.Persistent{ID: pickle.Tuple{"storage", pickle.Named("torch", class), "0", "cpu", elements}},
		at, pickle.Ints(size), pickle.Ints(stride), false, nil)
}

// withMetadata is a complex tensor of which a bit says something.
func withMetadata(bit string, set bool) *pickle.Object {
	o := tensor("ComplexFloatStorage", 1, 0, []int{1}, []int{1})
	o.Args = append(o.Args.(pickle.Tuple), dict(bit, set))
	return o
}

// fromType is a tensor with attributes.
func fromType(o *pickle.Object, class string) *pickle.Object {
	return pickle.Called("torch._tensor", "_rebuild_from_type_v2", o.Class, pickle.Named("torch", class), o.Args, dict("note", "x"))
}

// archiveOf is a file with one storage, of 12 bytes.
func archiveOf(t testing.TB, root any) []byte {
	var b bytes.Buffer
	require.NoError(t, archived(&b, root, []Value{{Data: counted(12)}}))
	return b.Bytes()
}

func dict(pairs ...any) *pickle.Dict {
	d := &pickle.Dict{}
	for i := 0; i < len(pairs); i += 2 {
		d.Keys, d.Values = append(d.Keys, pairs[i]), append(d.Values, pairs[i+1])
	}
	return d
}

// What a Write has left that was killed keeps none from writing, and of several at once one writes.
func TestWriteAtOnce(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "all.pt")
	left := []string{name + ".tmp", name + ".tmp-0123456789abcdef"}
	for _, file := range left {
		require.NoError(t, os.WriteFile(file, []byte("half"), 0o600))
	}
	var errs [4]error
	var all sync.WaitGroup
	for k := range errs {
		all.Go(func() { errs[k] = Write(name, ofAll()) })
	}
	all.Wait()
	won := 0
	for _, err := range errs {
		if err == nil {
			won++
		} else {
			require.ErrorIs(t, err, os.ErrExist)
		}
	}
	require.Equal(t, 1, won)
	s, err := Open(name)
	require.NoError(t, err)
	require.NoError(t, s.Close())
	there, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.ElementsMatch(t, append(left, name), there)
}

// Views of one storage: parts, columns, and what has dictionaries, lists and parameters around it.
func TestViews(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.pt")
	b := archiveOf(t, dict("model", dict("w", tensor("ByteStorage", 12, 0, []int{3, 4}, []int{4, 1}),
		"t", tensor("ByteStorage", 12, 0, []int{4, 3}, []int{1, 4}), "part", tensor("ByteStorage", 12, 5, []int{2, 2}, []int{4, 1})),
		"list", &pickle.List{Items: []any{3, pickle.Called("torch._utils", "_rebuild_parameter", tensor("ShortStorage", 6, 2, []int{2}, []int{3}), true, nil)}},
		"far", tensor("ByteStorage", 12, 0, []int{1, 1, 1, 1, 12}, []int{1 << 22, 1 << 18, 1 << 13, 1 << 7, 1}),
		"own", fromType(tensor("ByteStorage", 12, 3, []int{2}, []int{1}), "Tensor"), "plain", withMetadata("conj", false),
		"step", 7, "call", pickle.Called("os", "system", "false")))
	require.NoError(t, os.WriteFile(name, b, 0o600))
	s, err := Open(name)
	require.NoError(t, err)
	defer s.Close()
	require.Equal(t, named([]Value{
		{Tensor{"model.w", "U8", []int{3, 4}}, counted(12)},
		{Tensor{"model.t", "U8", []int{4, 3}}, []byte{1, 5, 9, 2, 6, 10, 3, 7, 11, 4, 8, 12}},
		{Tensor{"model.part", "U8", []int{2, 2}}, []byte{6, 7, 10, 11}},
		{Tensor{"list.1", "I16", []int{2}}, []byte{5, 6, 11, 12}},
		{Tensor{"far", "U8", []int{1, 1, 1, 1, 12}}, counted(12)},
		{Tensor{"own", "U8", []int{2}}, []byte{4, 5}},
		{Tensor{"plain", "C64", []int{1}}, counted(8)},
	}), all(t, s))
}

func TestRefused(t *testing.T) {
	loop := "\x80\x02]q\x00h\x00a."
	lists := "\x80\x02]q\x00" // of which each has the one before twice
	for i := range 50 {
		lists += fmt.Sprintf("]q%c(h%ch%ce", i+1, i, i)
	}
	lists += "."
	compressed := func() []byte {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		w, err := z.Create("archive/data.pkl")
		require.NoError(t, err)
		_, err = w.Write(make([]byte, 1<<20))
		require.NoError(t, err)
		require.NoError(t, z.Close())
		return b.Bytes()
	}
	raw := func(files ...string) []byte {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for i := 0; i < len(files); i += 2 {
			w, err := z.CreateHeader(&zip.FileHeader{Name: "archive/" + files[i], Method: zip.Store})
			require.NoError(t, err)
			_, err = w.Write([]byte(files[i+1]))
			require.NoError(t, err)
		}
		require.NoError(t, z.Close())
		return b.Bytes()
	}
	damaged := archiveOf(t, dict("x", tensor("ByteStorage", 12, 0, []int{12}, []int{1})))
	damaged[bytes.Index(damaged, counted(12))]++
	for _, tc := range []struct {
		name string
		b    []byte
		why  string
	}{
		{"no zip", []byte("\x80\x02}."), "no zip file"},
		{"compressed", compressed(), "is compressed"},
		{"no pickle", raw("version", "3"), "no data.pkl"},
		{"big-endian", raw("byteorder", "big", "data.pkl", "N."), `byte order is "big"`},
		{"a list in itself", raw("data.pkl", loop), "nested more than 64"},
		{"beyond", archiveOf(t, dict("x", tensor("ByteStorage", 99, 1, []int{12}, []int{1}))), `tensor "x": it ends at element 13`},
		{"beyond by strides", archiveOf(t, dict("x", tensor("ByteStorage", 99, 0, []int{2, 2}, []int{1 << 40, 1}))), "it ends at element"},
		{"expanded", archiveOf(t, dict("x", tensor("ByteStorage", 99, 0, []int{1 << 20, 12}, []int{0, 1}))), "expanded"},
		{"too large", archiveOf(t, dict("x", tensor("ByteStorage", 99, 0, []int{1 << 40, 1 << 40}, []int{0, 0}))), "no shape"},
		{"less than nothing", archiveOf(t, dict("x", tensor("ByteStorage", 99, 0, []int{-1}, []int{1}))), "no shape"},
		{"no type", archiveOf(t, dict("x", tensor("QUInt8Storage", 99, 0, []int{1}, []int{1}))), "type is not known"},
		{"sparse", archiveOf(t, dict("x", pickle.Called("torch._utils", "_rebuild_sparse_tensor", 1))), "_rebuild_sparse_tensor"},
		{"two files of one name", raw("data.pkl", "N.", "data/0", "x", "data/0", "y"), `two files in it are called "data/0"`},
		{"lists in lists", raw("data.pkl", lists), "in too many places"},
		{"conjugate", archiveOf(t, dict("x", withMetadata("conj", true))), "conjugate"},
		{"negative", archiveOf(t, dict("x", withMetadata("neg", true))), "negative"},
		{"what is not known of it", archiveOf(t, dict("x", fromType(pickle.Called("torch", "f"), "DTensor"))), "_rebuild_from_type_v2"},
		{"twice", archiveOf(t, dict("x", dict("y", tensor("ByteStorage", 12, 0, []int{1}, []int{1})), "x.y", tensor("ByteStorage", 12, 0, []int{1}, []int{1}))), "two tensors"},
	} {
		name := filepath.Join(t.TempDir(), "x.pt")
		require.NoError(t, os.WriteFile(name, tc.b, 0o600))
		_, err := Open(name)
		require.ErrorContains(t, err, tc.why, tc.name)
	}
	name := filepath.Join(t.TempDir(), "x.pt")
	require.NoError(t, os.WriteFile(name, damaged, 0o600))
	s, err := Open(name)
	require.NoError(t, err)
	require.ErrorContains(t, s.Read("x", make([]byte, 12)), "checksum")
	require.NoError(t, s.Close())
}

// A directory whose tensor is in two boxes, of which one lies in the middle of rows; and what .metadata may not say.
func TestChunks(t *testing.T) {
	box := func(offset, size []int) any {
		return pickle.Made(dcpModule, "ChunkStorageMetadata", "offsets", sizeOf(offset), "sizes", sizeOf(size))
	}
	a := archiveOf(t, tensor("ByteStorage", 12, 0, []int{3, 1}, []int{1, 1}))
	b := archiveOf(t, tensor("ByteStorage", 12, 3, []int{3, 3}, []int{3, 1}))
	write := func(t *testing.T, path string, second any, at, length int) string {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, "__0_0.distcp"), append(bytes.Clone(a), b...), 0o600))
		info := func(at, length int) any {
			return pickle.Made(fileModule, "_StorageInfo", "relative_path", path, "offset", at, "length", length)
		}
		index := func(offset ...int) any {
			return pickle.Made(dcpModule, "MetadataIndex", "fqn", "x", "offset", sizeOf(offset))
		}
		properties := &pickle.Object{Class: pickle.Named(dcpModule, "TensorProperties"), Args: pickle.New, State: pickle.Tuple{pickle.Named("torch", "uint8")}}
		text, err := pickle.Write(nil, pickle.Made(dcpModule, "Metadata", "state_dict_metadata", dict("x",
			pickle.Made(dcpModule, "TensorStorageMetadata", "properties", properties, "size", sizeOf([]int{3, 4}),
				"chunks", &pickle.List{Items: []any{box([]int{0, 0}, []int{3, 1}), second}})),
			"storage_data", dict(index(0, 0), info(0, len(a)), index(0, 1), info(at, length))))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, ".metadata"), text, 0o600))
		return dir
	}
	rest := box([]int{0, 1}, []int{3, 3})
	s, err := OpenDCP(write(t, "__0_0.distcp", rest, len(a), len(b)))
	require.NoError(t, err)
	require.Equal(t, named([]Value{{Tensor{"x", "U8", []int{3, 4}}, []byte{1, 4, 5, 6, 2, 7, 8, 9, 3, 10, 11, 12}}}), all(t, s))
	require.NoError(t, s.Close())
	for why, dir := range map[string]string{
		"is not said":            write(t, "../__0_0.distcp", rest, len(a), len(b)),
		"not in the":             write(t, "__0_0.distcp", rest, len(a), len(b)+1),
		"does not fit":           write(t, "__0_0.distcp", box([]int{0, 1}, []int{3, 4}), len(a), len(b)),
		"12 elements, but 3 are": write(t, "__0_0.distcp", box([]int{0, 1}, []int{0, 3}), len(a), len(b)),
		"no such file":           write(t, "__1_0.distcp", rest, len(a), len(b)),
	} {
		_, err := OpenDCP(dir)
		require.ErrorContains(t, err, why)
	}
	s, err = OpenDCP(write(t, "__0_0.distcp", rest, 0, len(a)))
	require.NoError(t, err)
	require.ErrorContains(t, s.Read("x", make([]byte, 12)), "something else")
	require.NoError(t, s.Close())
}

// What is wrong with a description is said without all that it has: a value of 40 tuples is 1<<40 times the first.
func TestShortErrors(t *testing.T) {
	bomb := pickle.Tuple{}
	for range 40 {
		bomb = pickle.Tuple{bomb, bomb}
	}
	a := &archive{}
	for _, at := range []int{0, 1, 2, 3} {
		o := tensor("ByteStorage", 12, 0, []int{1}, []int{1})
		args := o.Args.(pickle.Tuple)
		args[1], args[2], args[3] = int64(0), pickle.Tuple{int64(1)}, pickle.Tuple{int64(1)}
		if at == 0 {
			args[0].(*pickle.Persistent).ID.(pickle.Tuple)[1] = bomb
		} else {
			args[at] = bomb
		}
		_, err := a.view(o, 0)
		require.Error(t, err)
		require.Less(t, len(err.Error()), 200)
	}
}

// A file that was cut after its checksum was proved, and a Set that was closed.
func TestCut(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.pt")
	require.NoError(t, Write(name, []Value{{Tensor{"x", "U8", []int{12}}, counted(12)}}))
	s, err := Open(name)
	require.NoError(t, err)
	b := make([]byte, 12)
	require.NoError(t, s.Read("x", b))
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	require.NoError(t, os.Truncate(name, int64(bytes.Index(text, counted(12))+5)))
	require.ErrorIs(t, s.Read("x", b), io.ErrUnexpectedEOF)
	require.NoError(t, s.Close())
	require.ErrorIs(t, s.Read("x", b), os.ErrClosed)
}

// Tensors of which each has the boxes at these offsets, in a file of its own. Boxes that have an element twice lack
// another; and however many files there are, few are open.
func TestManyFiles(t *testing.T) {
	dir := t.TempDir()
	made := func(offsets ...[]int) {
		tensors, where := dict(), dict()
		for i, at := range offsets {
			name, file := fmt.Sprint("x", i), fmt.Sprintf("__%d_0.distcp", i)
			b := archiveOf(t, tensor("ByteStorage", 12, i%12, []int{1}, []int{1}))
			require.NoError(t, os.WriteFile(filepath.Join(dir, file), b, 0o600))
			chunks := &pickle.List{}
			for _, k := range at {
				chunks.Items = append(chunks.Items, pickle.Made(dcpModule, "ChunkStorageMetadata", "offsets", sizeOf([]int{k}), "sizes", sizeOf([]int{1})))
				where.Set(pickle.Made(dcpModule, "MetadataIndex", "fqn", name, "offset", sizeOf([]int{k})),
					pickle.Made(fileModule, "_StorageInfo", "relative_path", file, "offset", 0, "length", len(b)))
			}
			properties := &pickle.Object{Class: pickle.Named(dcpModule, "TensorProperties"), Args: pickle.New, State: pickle.Tuple{pickle.Named("torch", "uint8")}}
			tensors.Set(name, pickle.Made(dcpModule, "TensorStorageMetadata", "properties", properties, "size", sizeOf([]int{len(at)}), "chunks", chunks))
		}
		text, err := pickle.Write(nil, pickle.Made(dcpModule, "Metadata", "state_dict_metadata", tensors, "storage_data", where))
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(filepath.Join(dir, ".metadata"), text, 0o600))
	}
	made([]int{0, 0}, []int{1, 0})
	s, err := OpenDCP(dir)
	require.NoError(t, err)
	require.ErrorContains(t, s.Read("x0", make([]byte, 2)), "two of its boxes have element 0")
	b := make([]byte, 2)
	require.NoError(t, s.Read("x1", b))
	require.Equal(t, []byte{2, 2}, b)
	require.Len(t, s.files, 1)
	require.NoError(t, s.Close())

	made(slices.Repeat([][]int{{0}}, maxOpen+6)...)
	s, err = OpenDCP(dir)
	require.NoError(t, err)
	for range 2 {
		for i := range maxOpen + 6 {
			require.NoError(t, s.Read(fmt.Sprint("x", i), b[:1]))
			require.Equal(t, byte(i%12+1), b[0])
		}
	}
	require.LessOrEqual(t, len(s.files), maxOpen)
	require.NoError(t, s.Close())
}

// PyTorch reads what is written, and what it has written is read, with the same bytes. make torch-files runs this with
// GOCCL_TEST_TORCH, the directory of PyTorch.
func TestTorch(t *testing.T) {
	torch := os.Getenv("GOCCL_TEST_TORCH")
	if torch == "" {
		t.Skip("hardware: GOCCL_TEST_TORCH is not set: 540 MB of PyTorch (make torch-files)")
	}
	dir := t.TempDir()
	require.NoError(t, Write(filepath.Join(dir, "ours.pt"), ofAll()))
	require.NoError(t, WriteDCP(filepath.Join(dir, "ours"), ofAll()))
	cmd := exec.CommandContext(t.Context(), "python3", filepath.Join("testdata", "torch_files.py"), dir)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+torch, "LD_LIBRARY_PATH="+filepath.Join(torch, "stubs"), "PYTHONDONTWRITEBYTECODE=1")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	require.NoError(t, err)
	var said map[string]map[string]string // by file and name: type, shape and sum
	require.NoError(t, json.Unmarshal(out, &said))
	sums := func(m map[string]Value) map[string]string {
		got := map[string]string{}
		for name, v := range m {
			sum := sha256.Sum256(v.Data)
			got[name] = fmt.Sprintf("%s %v %s", v.Type, v.Shape, hex.EncodeToString(sum[:]))
		}
		return got
	}
	require.Equal(t, sums(named(ofAll())), said["ours.pt"])
	require.Equal(t, sums(named(ofAll())), said["ours"])
	for _, f := range []string{"theirs.pt", "theirs"} {
		open := Open
		if filepath.Ext(f) == "" {
			open = OpenDCP
		}
		s, err := open(filepath.Join(dir, f))
		require.NoError(t, err)
		require.Greater(t, len(said[f]), len(types))
		require.Equal(t, said[f], sums(all(t, s)), f)
		require.NoError(t, s.Close())
	}
}

func FuzzArchive(f *testing.F) {
	f.Add(archiveOf(f, dict("x", tensor("ByteStorage", 12, 1, []int{2, 2}, []int{4, 1}))))
	f.Add(archiveOf(f, dict("x", pickle.Called("torch._utils", "_rebuild_parameter", tensor("FloatStorage", 3, 0, []int{3}, []int{1})))))
	f.Fuzz(func(t *testing.T, b []byte) {
		z, err := newArchive(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			return
		}
		_ = z.walk(z.root, nil, 0, func(name string, v *view) error {
			n := pickle.Count(v.size) * typed(v.dtype)
			if n > len(b) {
				t.Fatalf("%q: %d bytes of a file of %d", name, n, len(b))
			}
			return z.read(v, make([]byte, n))
		})
	})
}

func FuzzMetadata(f *testing.F) {
	dir := f.TempDir()
	if err := WriteDCP(filepath.Join(dir, "x"), ofAll()[:2]); err != nil {
		f.Fatal(err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "x", ".metadata"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(_ *testing.T, b []byte) {
		s := newSet()
		_ = s.metadata(filepath.Join(dir, "x"), b)
	})
}
