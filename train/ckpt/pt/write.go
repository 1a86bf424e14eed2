package pt

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"

	"github.com/goccl/goccl/internal/files"
	"github.com/goccl/goccl/train/ckpt/internal/pickle"
)

// Value is a tensor that is written, with its elements in the order of the rows, little-endian.
type Value struct {
	Tensor
	Data []byte
}

// check is an error unless the tensor has a type and a shape that take its bytes.
func (v *Value) check() error {
	size, n, fits := typed(v.Type), 1, true
	for _, d := range v.Shape {
		if fits = fits && d >= 0 && n <= 1<<48/max(d, 1); fits {
			n *= d
		}
	}
	if !fits || size == 0 || v.Name == "" || n*size != len(v.Data) {
		return fmt.Errorf("tensor %q: %s %v for %d bytes", v.Name, v.Type, v.Shape, len(v.Data))
	}
	return nil
}

// Write writes a file for torch.load: a dictionary of tensors by their names. The file must not be there
// yet, and is there whole or not at all. A Write that is killed may leave NAME.tmp-RANDOM, which nothing reads.
func Write(name string, vs []Value) error {
	err := unique(vs)
	if err == nil {
		d := &pickle.Dict{}
		for i := range vs {
			d.Set(vs[i].Name, vs[i].rebuilt(i))
		}
		err = atomically(name, func(w io.Writer) error { return archived(w, d, vs) })
	}
	if err != nil {
		return fmt.Errorf("pt: Write of %s: %w", name, err)
	}
	return nil
}

func unique(vs []Value) error {
	seen := map[string]bool{}
	for i := range vs {
		if err := vs[i].check(); err != nil {
			return err
		}
		if seen[vs[i].Name] {
			return fmt.Errorf("two tensors are called %q", vs[i].Name)
		}
		seen[vs[i].Name] = true
	}
	return nil
}

// dtype is what torch calls the type.
func dtype(name string) (dtype, storage string) {
	for _, t := range types {
		if t.name == name {
			return t.dtype, t.storage
		}
	}
	return "", ""
}

// rebuilt is the call that makes the tensor of storage i.
func (v *Value) rebuilt(i int) any {
	stride, n := make([]int, len(v.Shape)), 1
	for d := len(v.Shape) - 1; d >= 0; d-- {
		stride[d] = n
		n *= max(v.Shape[d], 1)
	}
	name, storage := dtype(v.Type)
	elements, class, function := len(v.Data)/typed(v.Type), pickle.Named("torch", storage), "_rebuild_tensor_v2"
	if storage == "" {
		elements, class, function = len(v.Data), pickle.Named("torch.storage", "UntypedStorage"), "_rebuild_tensor_v3"
	}
	hooks := &pickle.Object{Class: pickle.Named("collections", "OrderedDict"), Args: pickle.Tuple{}}
	args := pickle.Tuple{&pickle.Persistent{ID: pickle.Tuple{"storage", class, strconv.Itoa(i), "cpu", elements}}, 0,
		pickle.Ints(v.Shape), pickle.Ints(stride), false, hooks}
	if storage == "" {
		args = append(args, pickle.Named("torch", name))
	}
	return &pickle.Object{Class: pickle.Named("torch._utils", function), Args: args}
}

// archived writes what torch.save does.
func archived(w io.Writer, root any, vs []Value) error {
	text, err := pickle.Write(nil, root)
	if err != nil {
		return err
	}
	z := zip.NewWriter(w)
	add := func(name string, b []byte) {
		if err != nil {
			return
		}
		n := uint64(len(b))
		var to io.Writer
		to, err = z.CreateRaw(&zip.FileHeader{Name: "archive/" + name, Method: zip.Store, CRC32: crc32.ChecksumIEEE(b),
			CompressedSize64: n, UncompressedSize64: n})
		if err == nil {
			_, err = to.Write(b)
		}
	}
	add("data.pkl", text)
	add("byteorder", []byte("little"))
	for i := range vs {
		add("data/"+strconv.Itoa(i), vs[i].Data)
	}
	add("version", []byte("3\n"))
	return errors.Join(err, z.Close())
}

// atomically writes a file.
func atomically(name string, f func(io.Writer) error) (err error) {
	if _, err := os.Lstat(name); err == nil {
		return fmt.Errorf("%s: %w", name, os.ErrExist)
	}
	tmp := fmt.Sprintf("%s.tmp-%016x", name, rand.Uint64()) // no other's, nor that of one that was killed
	to, err := files.New(tmp, os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	if err = f(to); err == nil {
		err = to.Sync()
	}
	if err = errors.Join(err, to.Close()); err == nil {
		err = os.Link(tmp, name) // which fails if there is one by now
	}
	return errors.Join(err, os.Remove(tmp))
}

// sizeOf is a torch.Size.
func sizeOf(x []int) any { return pickle.Called("torch", "Size", pickle.Ints(x)) }

// WriteDCP writes the directory dir, which must not be there yet, for torch.distributed.checkpoint:
// .metadata and one .distcp file, which has each tensor whole. .metadata is written last, as PyTorch
// does: without it, nothing reads the directory.
func WriteDCP(dir string, vs []Value) error {
	err := unique(vs)
	if err == nil {
		err = os.Mkdir(dir, 0o777)
	}
	if err == nil {
		err = writeDCP(dir, vs)
	}
	if err != nil {
		return fmt.Errorf("pt: WriteDCP to %s: %w", dir, err)
	}
	return nil
}

func writeDCP(dir string, vs []Value) error {
	const file = "__0_0.distcp"
	tensors, planned, where := &pickle.Dict{}, &pickle.Dict{}, &pickle.Dict{}
	at := 0
	err := atomically(filepath.Join(dir, file), func(w io.Writer) error {
		for i := range vs {
			v := &vs[i]
			var b bytes.Buffer
			if err := archived(&b, v.rebuilt(0), vs[i:i+1]); err != nil {
				return err
			}
			if _, err := w.Write(b.Bytes()); err != nil {
				return err
			}
			name, _ := dtype(v.Type)
			zero, whole := sizeOf(make([]int, len(v.Shape))), sizeOf(v.Shape)
			layout := pickle.Called("torch.serialization", "_get_layout", "torch.strided")
			format := pickle.Called(dcpModule, "_MEM_FORMAT_ENCODING", 0)
			properties := &pickle.Object{Class: pickle.Named(dcpModule, "TensorProperties"), Args: pickle.New,
				State: pickle.Tuple{pickle.Named("torch", name), layout, false, format, false}}
			chunk := pickle.Made(dcpModule, "ChunkStorageMetadata", "offsets", zero, "sizes", whole)
			tensors.Set(v.Name, pickle.Made(dcpModule, "TensorStorageMetadata", "properties", properties, "size", whole,
				"chunks", &pickle.List{Items: []any{chunk}}))
			planned.Set(v.Name, pickle.Tuple{v.Name})
			where.Set(pickle.Made(dcpModule, "MetadataIndex", "fqn", v.Name, "index", 0, "offset", zero),
				pickle.Made(fileModule, "_StorageInfo", "relative_path", file, "offset", at, "length", b.Len()))
			at += b.Len()
		}
		return nil
	})
	if err != nil {
		return err
	}
	text, err := pickle.Write(nil, pickle.Made(dcpModule, "Metadata", "state_dict_metadata", tensors,
		"planner_data", planned, "storage_data", where, "storage_meta", nil))
	if err != nil {
		return err
	}
	return atomically(filepath.Join(dir, ".metadata"), func(w io.Writer) error { _, err := w.Write(text); return err })
}
