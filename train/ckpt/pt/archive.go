package pt

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/goccl/goccl/train/ckpt/internal/pickle"
)

// archive is what torch.save writes: a zip file with data.pkl, and a file for each storage.
type archive struct {
	root   any
	budget int                  // of walk
	files  map[string]*zip.File // by the name after that of the directory
	proved map[string]bool      // whose checksum is right
}

// view is a tensor: elements of a storage.
type view struct {
	dtype        string
	storage      string
	at           int // element
	size, stride []int
}

func newArchive(r io.ReaderAt, size int64) (*archive, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("it is no zip file, as torch.save writes since PyTorch 1.6: %w", err)
	}
	a := &archive{files: map[string]*zip.File{}, proved: map[string]bool{}}
	for _, f := range z.File {
		_, name, _ := strings.Cut(f.Name, "/")
		if f.Method != zip.Store || f.UncompressedSize64 != f.CompressedSize64 || f.UncompressedSize64 > uint64(size) {
			return nil, fmt.Errorf("%s is compressed, or larger than the file", f.Name)
		}
		if a.files[name] != nil {
			return nil, fmt.Errorf("two files in it are called %q", name)
		}
		a.files[name] = f
	}
	if f := a.files["byteorder"]; f != nil {
		b, err := a.all(f, 16)
		if err != nil {
			return nil, err
		}
		if string(b) != "little" {
			return nil, fmt.Errorf("its byte order is %q", b)
		}
	}
	f := a.files["data.pkl"]
	if f == nil {
		return nil, errors.New("it has no data.pkl")
	}
	b, err := a.all(f, most)
	if err != nil {
		return nil, err
	}
	a.root, err = pickle.Read(b)
	a.budget = 1<<16 + 16*len(b)
	return a, err
}

// all is what a small file has.
func (a *archive) all(f *zip.File, most uint64) ([]byte, error) {
	if f.UncompressedSize64 > most {
		return nil, fmt.Errorf("%s has %d bytes, more than the %d that are read", f.Name, f.UncompressedSize64, most)
	}
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// maxDepth is how deep tensors lie at most.
const maxDepth = 64

// walk calls f with each tensor in v. A few bytes can describe lists that are in one another again and again, so walk
// ends after a number of values, and of bytes in the names of tensors, in proportion to the pickle.
func (a *archive) walk(v any, path []string, depth int, f func(name string, v *view) error) error {
	if depth > maxDepth {
		return fmt.Errorf("it is nested more than %d deep", maxDepth)
	}
	if a.budget--; a.budget < 0 {
		return errors.New("it has the same values in too many places")
	}
	t, err := a.view(v, 0)
	if err != nil {
		return fmt.Errorf("tensor %q: %w", strings.Join(path, "."), err)
	}
	if t != nil {
		name := strings.Join(path, ".")
		a.budget -= len(name)
		return f(name, t)
	}
	var items []any
	var dict *pickle.Dict
	switch x := v.(type) {
	case pickle.Tuple:
		items = x
	case *pickle.List:
		items = x.Items
	case *pickle.Dict:
		dict = x
	case *pickle.Object:
		if pickle.Is(x.Class, "collections", "OrderedDict") {
			dict = &x.Dict
		}
	}
	for i, item := range items {
		if err := a.walk(item, append(path[:len(path):len(path)], strconv.Itoa(i)), depth+1, f); err != nil {
			return err
		}
	}
	if dict == nil {
		return nil
	}
	for i, k := range dict.Keys {
		name := ""
		switch k := k.(type) {
		case string:
			name = k
		case int64:
			name = strconv.FormatInt(k, 10)
		default:
			continue
		}
		if err := a.walk(dict.Values[i], append(path[:len(path):len(path)], name), depth+1, f); err != nil {
			return err
		}
	}
	return nil
}

// view is the tensor that v describes; nil if it is none.
func (a *archive) view(v any, depth int) (*view, error) {
	o, is := v.(*pickle.Object)
	if !is || depth > 8 {
		return nil, nil
	}
	args, is := o.Args.(pickle.Tuple)
	if !is {
		return nil, nil
	}
	s, is := o.Class.(*pickle.Symbol)
	if is && s.Module == "torch._tensor" && s.Name == "_rebuild_from_type_v2" && len(args) >= 3 {
		// A tensor with attributes, or of a class of its own: the call, the class, and what the call has.
		t, err := a.view(&pickle.Object{Class: args[0], Args: args[2]}, depth+1)
		if t == nil && err == nil {
			err = fmt.Errorf("it is made by %s from what is not known", s.Name)
		}
		return t, err
	}
	if !is || s.Module != "torch._utils" {
		return nil, nil
	}
	switch {
	case strings.HasPrefix(s.Name, "_rebuild_parameter") && len(args) > 0:
		return a.view(args[0], depth+1)
	case s.Name == "_rebuild_tensor_v2" && len(args) >= 4:
		if err := plain(args, 6); err != nil {
			return nil, err
		}
		return a.tensor(args, "")
	case s.Name == "_rebuild_tensor_v3" && len(args) >= 7:
		dtype := dtypeOf(args[6])
		if dtype == "" {
			return nil, errors.New("its type is not known")
		}
		if err := plain(args, 7); err != nil {
			return nil, err
		}
		return a.tensor(args, dtype)
	case strings.HasPrefix(s.Name, "_rebuild_"):
		return nil, fmt.Errorf("it is made by %s, which is not known", s.Name)
	}
	return nil, nil
}

// plain is an error if the elements are not those of the storage: args[at] then says so.
func plain(args pickle.Tuple, at int) error {
	if len(args) <= at {
		return nil
	}
	switch x := args[at].(type) {
	case nil:
		return nil
	case *pickle.Dict:
		if conj, neg := x.Get("conj"), x.Get("neg"); (conj == nil || conj == false) && (neg == nil || neg == false) {
			return nil
		}
		return errors.New("it is the conjugate or the negative of what is stored: call resolve_conj and resolve_neg before" +
			" it is saved")
	}
	return fmt.Errorf("a %T says more of it", args[at])
}

// tensor is what _rebuild_tensor makes: of a storage, from an element on, with a size and strides.
func (a *archive) tensor(args pickle.Tuple, dtype string) (*view, error) {
	id, is := args[0].(*pickle.Persistent)
	if !is {
		return nil, errors.New("it has no storage")
	}
	t, is := id.ID.(pickle.Tuple)
	if !is || len(t) < 5 || t[0] != "storage" {
		return nil, errors.New("its storage is not described as one")
	}
	for _, k := range types {
		if dtype == "" && k.storage != "" && pickle.Is(t[1], "torch", k.storage) {
			dtype = k.name
		}
	}
	key, is := t[2].(string)
	if !is || dtype == "" {
		return nil, fmt.Errorf("its type is not known: a storage of %s", pickle.Spelled(t[1]))
	}
	v := &view{dtype: dtype, storage: "data/" + key}
	at, isInt := args[1].(int64)
	var err error
	if v.size, err = pickle.Shape(args[2]); err == nil {
		v.stride, err = pickle.Numbers(args[3])
	}
	f := a.files[v.storage]
	switch {
	case err != nil:
		return nil, err
	case f == nil:
		return nil, fmt.Errorf("its storage %s is missing", v.storage)
	case !isInt || at < 0 || len(v.size) != len(v.stride):
		return nil, fmt.Errorf("element %d (a %T), size %v, strides %v", at, args[1], v.size, v.stride)
	}
	v.at = int(at)
	if end := v.end(); pickle.Count(v.size) > 0 && uint64(end) > f.UncompressedSize64/uint64(typed(dtype)) {
		return nil, fmt.Errorf("it ends at element %d of %s, which has %d bytes", end, v.storage, f.UncompressedSize64)
	}
	if n := pickle.Count(v.size); uint64(n) > f.UncompressedSize64/uint64(typed(dtype)) { // more than the file
		return nil, fmt.Errorf("it has %d elements of a storage of %d bytes: it was expanded, and is to be contiguous", n,
			f.UncompressedSize64)
	}
	return v, nil
}

const far = 1 << 60 // more than any element's number

// end is one more than the last element of the storage that v has.
func (v *view) end() int {
	end := v.at
	for d, n := range v.size {
		if n > 1 && v.stride[d] > far/(n-1) || end > far {
			return far
		}
		end += max(n-1, 0) * v.stride[d]
	}
	return min(end, far) + 1
}

// dense reports whether the elements follow one another.
func (v *view) dense() bool {
	want := 1
	for d := len(v.size) - 1; d >= 0; d-- {
		if v.size[d] != 1 && v.stride[d] != want {
			return false
		}
		want *= v.size[d]
	}
	return true
}

// read fills dst with the elements of v.
func (a *archive) read(v *view, dst []byte) error {
	if len(dst) == 0 {
		return nil
	}
	f, size := a.files[v.storage], typed(v.dtype)
	if !a.proved[v.storage] {
		r, err := f.Open()
		if err == nil {
			_, err = io.Copy(io.Discard, r)
			err = errors.Join(err, r.Close())
		}
		if err != nil {
			return fmt.Errorf("%s: %w", v.storage, err)
		}
		a.proved[v.storage] = true
	}
	r, err := f.OpenRaw()
	if err != nil {
		return err
	}
	raw, is := r.(io.ReaderAt)
	if !is {
		return fmt.Errorf("%s cannot be read from the middle", v.storage)
	}
	if v.dense() {
		return full(raw, dst, int64(v.at*size))
	}
	span := make([]byte, (v.end()-v.at)*size)
	if err := full(raw, span, int64(v.at*size)); err != nil {
		return err
	}
	index := make([]int, len(v.size))
	for at := 0; at < len(dst); at += size {
		from := 0
		for d := range index {
			from += index[d] * v.stride[d]
		}
		copy(dst[at:at+size], span[from*size:])
		for d := len(index) - 1; d >= 0; d-- {
			if index[d]++; index[d] < v.size[d] {
				break
			}
			index[d] = 0
		}
	}
	return nil
}

// full fills b from at on.
func full(r io.ReaderAt, b []byte, at int64) error {
	n, err := r.ReadAt(b, at)
	if n == len(b) {
		return nil
	}
	if errors.Is(err, io.EOF) { // the file has become shorter
		err = io.ErrUnexpectedEOF
	}
	return err
}
