// Package pt reads and writes the tensors in PyTorch's own files: what torch.save writes (.pt, .pth,
// .bin), and a directory of torch.distributed.checkpoint (.metadata and .distcp files). The pickles
// in them are read as descriptions, and nothing that they name is called. What is no tensor is left
// out. Files of PyTorch before 1.6 are not read.
//
// Types are called as in safetensors, such as F32 and BF16. Elements are in the order of the rows,
// little-endian. So a tensor that was read is the Data of a ckpt.Tensor whose memory Read fills.
package pt

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"

	"github.com/goccl/goccl/internal/files"
	"github.com/goccl/goccl/train/ckpt/internal/pickle"
)

// Tensor says what a tensor is.
type Tensor struct {
	// Name has the keys and places in the dictionaries and lists that the tensor is in, with dots between.
	Name string
	// Type is that of the elements, as safetensors calls it.
	Type  string
	Shape []int
}

// Set is the tensors of a file or of a directory.
type Set struct {
	tensors []Tensor
	pieces  map[string][]piece
	files   map[string]*os.File
	zips    map[segment]*archive
}

// segment is a part of a file.
type segment struct {
	file       string
	at, length int64
}

// piece is a box of a tensor, and where it is.
type piece struct {
	box  pickle.Box
	in   segment
	view *view // nil: what the segment has, which is read when it is asked for
}

// types are PyTorch's names for types, their storages, and the size of an element.
var types = []struct {
	name, dtype, storage string
	size                 int
}{
	{"F32", "float32", "FloatStorage", 4}, {"F64", "float64", "DoubleStorage", 8},
	{"F16", "float16", "HalfStorage", 2}, {"BF16", "bfloat16", "BFloat16Storage", 2},
	{"I64", "int64", "LongStorage", 8}, {"I32", "int32", "IntStorage", 4}, {"I16", "int16", "ShortStorage", 2},
	{"I8", "int8", "CharStorage", 1}, {"U8", "uint8", "ByteStorage", 1}, {"BOOL", "bool", "BoolStorage", 1},
	{"C64", "complex64", "ComplexFloatStorage", 8}, {"F8_E4M3", "float8_e4m3fn", "", 1},
	{"F8_E5M2", "float8_e5m2", "", 1}, {"F8_E8M0", "float8_e8m0fnu", "", 1},
	{"U16", "uint16", "", 2}, {"U32", "uint32", "", 4}, {"U64", "uint64", "", 8},
}

// typed is the type of that name; 0: there is none.
func typed(name string) (size int) {
	for _, t := range types {
		if t.name == name {
			size = t.size
		}
	}
	return size
}

// most is how much of a pickle is read.
const most = 1 << 28

// maxOpen is how many files of a directory are open at once.
const maxOpen = 64

func newSet() *Set {
	return &Set{pieces: map[string][]piece{}, files: map[string]*os.File{}, zips: map[segment]*archive{}}
}

// Open opens a file that torch.save has written.
func Open(name string) (*Set, error) {
	s := newSet()
	return s.or(name, s.open(name))
}

// or is s, or what is wrong with the file.
func (s *Set) or(name string, err error) (*Set, error) {
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pt: %s: %w", name, err), s.Close())
	}
	slices.SortFunc(s.tensors, func(a, b Tensor) int { return cmp.Compare(a.Name, b.Name) })
	for i := range s.tensors[min(1, len(s.tensors)):] {
		if s.tensors[i].Name == s.tensors[i+1].Name {
			return nil, errors.Join(fmt.Errorf("pt: %s: two tensors are called %q", name, s.tensors[i].Name), s.Close())
		}
	}
	return s, nil
}

func (s *Set) open(name string) error {
	f, size, err := files.Open(name, math.MaxInt64)
	if err != nil {
		return err
	}
	s.files[name] = f
	in := segment{name, 0, size}
	z, err := s.archive(f, in)
	if err != nil {
		return err
	}
	return z.walk(z.root, nil, 0, func(name string, v *view) error {
		s.tensors = append(s.tensors, Tensor{name, v.dtype, v.size})
		s.pieces[name] = []piece{{pickle.Box{Offset: make([]int, len(v.size)), Size: v.size}, in, v}}
		return nil
	})
}

// OpenDCP opens a directory that torch.distributed.checkpoint has written. The files that .metadata
// names are opened when Read needs them, inside the directory only.
func OpenDCP(dir string) (*Set, error) {
	s := newSet()
	b, err := files.ReadIn(dir, ".metadata", most)
	if err == nil {
		err = s.metadata(dir, b)
	}
	return s.or(dir, err)
}

// Tensors lists the tensors, by name.
func (s *Set) Tensors() []Tensor { return slices.Clone(s.tensors) }

// Close closes the files.
func (s *Set) Close() (err error) {
	for _, f := range s.files {
		err = errors.Join(err, f.Close())
	}
	s.files = nil
	return err
}

// Read fills dst, which has the size of the whole tensor, with its elements. Several goroutines must not read at once.
func (s *Set) Read(name string, dst []byte) error {
	i, is := slices.BinarySearchFunc(s.tensors, name, func(t Tensor, name string) int { return cmp.Compare(t.Name, name) })
	if !is {
		return fmt.Errorf("pt: there is no tensor %q", name)
	}
	t := s.tensors[i]
	size, n := typed(t.Type), pickle.Count(t.Shape)
	if len(dst) != n*size {
		return fmt.Errorf("pt: tensor %q is %s %v, and the memory has %d bytes", name, t.Type, t.Shape, len(dst))
	}
	ps := s.pieces[name]
	if err := pickle.Disjoint(t.Shape, len(ps), func(i int) pickle.Box { return ps[i].box }); err != nil {
		return fmt.Errorf("pt: tensor %q: %w", name, err)
	}
	for _, p := range ps {
		if err := s.piece(t, p, dst); err != nil {
			return fmt.Errorf("pt: tensor %q, %s: %w", name, p.in.file, err)
		}
	}
	return nil
}

// piece reads a box of t.
func (s *Set) piece(t Tensor, p piece, dst []byte) error {
	z, err := s.at(p.in)
	if err != nil {
		return err
	}
	v := p.view
	if v == nil {
		if v, err = z.view(z.root, 0); err != nil {
			return err
		}
	}
	if v == nil || v.dtype != t.Type || !slices.Equal(v.size, p.box.Size) {
		return fmt.Errorf("it has something else than the %s %v that .metadata says", t.Type, p.box.Size)
	}
	size := typed(t.Type)
	if slices.Equal(p.box.Size, t.Shape) {
		return z.read(v, dst)
	}
	b := make([]byte, pickle.Count(p.box.Size)*size)
	if err := z.read(v, b); err != nil {
		return err
	}
	pickle.Rows(t.Shape, p.box.Offset, p.box.Size, func(to, from, n int) {
		copy(dst[to*size:], b[from*size:(from+n)*size])
	})
	return nil
}

// at is the archive in a segment.
func (s *Set) at(in segment) (*archive, error) {
	if s.files == nil {
		return nil, os.ErrClosed
	}
	if z := s.zips[in]; z != nil {
		return z, nil
	}
	if f := s.files[in.file]; f != nil {
		return s.archive(f, in)
	}
	for name, f := range s.files { // none is in use: s.archive makes another archive
		if len(s.files) < maxOpen {
			break
		}
		delete(s.files, name)
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
	f, _, err := files.OpenIn(filepath.Dir(in.file), filepath.Base(in.file), math.MaxInt64)
	if err != nil {
		return nil, err
	}
	s.files[in.file] = f
	return s.archive(f, in)
}

func (s *Set) archive(r io.ReaderAt, in segment) (*archive, error) {
	z, err := newArchive(io.NewSectionReader(r, in.at, in.length), in.length)
	if err != nil {
		return nil, err
	}
	clear(s.zips) // of a directory one at a time: a checkpoint may have a million
	s.zips[in] = z
	return z, nil
}

const (
	dcpModule  = "torch.distributed.checkpoint.metadata"
	fileModule = "torch.distributed.checkpoint.filesystem"
)

// metadata reads .metadata.
func (s *Set) metadata(dir string, b []byte) error {
	root, err := pickle.Read(b)
	if err != nil {
		return err
	}
	tensors, is := pickle.Field(root, dcpModule, "Metadata", "state_dict_metadata").(*pickle.Dict)
	where, also := pickle.Field(root, dcpModule, "Metadata", "storage_data").(*pickle.Dict)
	if !is || !also {
		return errors.New(".metadata has no Metadata of torch.distributed.checkpoint")
	}
	type key struct{ name, offset string }
	sizes := map[string]int64{}
	infos := map[key]any{}
	for i, k := range where.Keys {
		name, _ := pickle.Field(k, dcpModule, "MetadataIndex", "fqn").(string)
		offset := ""
		if o := pickle.Field(k, dcpModule, "MetadataIndex", "offset"); o != nil {
			at, err := pickle.Shape(o)
			if err != nil {
				return err
			}
			offset = fmt.Sprint(at)
		}
		infos[key{name, offset}] = where.Values[i]
	}
	for i, k := range tensors.Keys {
		name, _ := k.(string)
		chunks, is := pickle.Field(tensors.Values[i], dcpModule, "TensorStorageMetadata", "chunks").(*pickle.List)
		if !is {
			continue // what is no tensor
		}
		t := Tensor{Name: name, Type: dtypeIn(pickle.Field(tensors.Values[i], "", "", "properties"))}
		if t.Shape, err = pickle.Shape(pickle.Field(tensors.Values[i], "", "", "size")); err != nil {
			return fmt.Errorf("tensor %q: %w", name, err)
		}
		if t.Type == "" {
			return fmt.Errorf("tensor %q has a type that is not known", name)
		}
		have := 0
		for _, c := range chunks.Items {
			p := piece{}
			if p.box.Offset, err = pickle.Shape(pickle.Field(c, dcpModule, "ChunkStorageMetadata", "offsets")); err != nil {
				return fmt.Errorf("tensor %q: %w", name, err)
			}
			if p.box.Size, err = pickle.Shape(pickle.Field(c, dcpModule, "ChunkStorageMetadata", "sizes")); err != nil {
				return fmt.Errorf("tensor %q: %w", name, err)
			}
			fits := len(p.box.Offset) == len(t.Shape) && len(p.box.Size) == len(t.Shape)
			for d := 0; fits && d < len(t.Shape); d++ {
				fits = p.box.Size[d] <= t.Shape[d] && p.box.Offset[d] <= t.Shape[d]-p.box.Size[d]
			}
			if have += pickle.Count(p.box.Size); !fits || have > pickle.Count(t.Shape) {
				return fmt.Errorf("tensor %q: the box %v+%v does not fit the shape %v", name, p.box.Offset, p.box.Size, t.Shape)
			}
			info := infos[key{name, fmt.Sprint(p.box.Offset)}]
			path, _ := pickle.Field(info, fileModule, "_StorageInfo", "relative_path").(string)
			at, isAt := pickle.Field(info, fileModule, "_StorageInfo", "offset").(int64)
			length, isLength := pickle.Field(info, fileModule, "_StorageInfo", "length").(int64)
			if path != filepath.Base(path) || !filepath.IsLocal(path) || !isAt || !isLength || at < 0 || length < 0 {
				return fmt.Errorf("tensor %q: where its elements at %v are is not said", name, p.box.Offset)
			}
			how := pickle.Field(info, fileModule, "_StorageInfo", "transform_descriptors")
			if l, is := how.(*pickle.List); is && len(l.Items) > 0 {
				return fmt.Errorf("tensor %q: it is stored transformed, as compressed", name)
			}
			if _, known := sizes[path]; !known {
				f, size, err := files.OpenIn(dir, path, math.MaxInt64)
				if err != nil {
					return fmt.Errorf("tensor %q: %w", name, err)
				}
				if sizes[path] = size; f.Close() != nil {
					return fmt.Errorf("tensor %q: %s cannot be closed", name, path)
				}
			}
			// So what it says there is takes no more memory than the files.
			if at > sizes[path] || length > sizes[path]-at || int64(pickle.Count(p.box.Size)) > length/int64(typed(t.Type)) {
				return fmt.Errorf("tensor %q: its elements at %v are not in the %d bytes of %s", name, p.box.Offset, sizes[path], path)
			}
			p.in = segment{filepath.Join(dir, path), at, length}
			s.pieces[name] = append(s.pieces[name], p)
		}
		if n := pickle.Count(t.Shape); have != n {
			return fmt.Errorf("tensor %q has %d elements, but %d are present", name, n, have)
		}
		s.tensors = append(s.tensors, t)
	}
	return nil
}

// dtypeIn is the type that TensorProperties have, whose state is a tuple, or was once an object's.
func dtypeIn(v any) string {
	o, is := v.(*pickle.Object)
	if !is {
		return ""
	}
	switch x := o.State.(type) {
	case pickle.Tuple:
		if len(x) > 0 {
			return dtypeOf(x[0])
		}
	case *pickle.Dict:
		return dtypeOf(x.Get("dtype"))
	}
	return ""
}

// dtypeOf is what torch calls by that name.
func dtypeOf(v any) string {
	for _, t := range types {
		if pickle.Is(v, "torch", t.dtype) {
			return t.name
		}
	}
	return ""
}
