package ckpt

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ckpt/internal/slots"
	"github.com/goccl/goccl/train/ckpt/store"
	"github.com/goccl/goccl/train/internal/same"
)

// Shelf is the checkpoints in a Store, such as an object store's bucket. Its methods do what the
// functions of the same names do in directories, and promise the same, with the names of directories
// being paths in the Store. All ranks pass a Store of the same objects.
//
// A checkpoint is the object NAME/index.json and the parts that it names. The index is put last,
// and fresh: of two Saves of one name one gets os.ErrExist. What a Save that was killed has left is
// removed by the next Save of that name, or by Keep, which first takes from its writer the right to
// publish: one that still lives gets an error. For this, an empty index stays where a checkpoint was
// removed, and the next one of that name has NAME/index.1.json, and so on. A damaged checkpoint of a
// step gives way to a Save of that step, and Keep removes what is left of it. If a Store does not
// answer when a Save publishes, the Save's error says that the checkpoint may be there.
//
// A checkpoint NAME that was downloaded to a directory is one for the functions of this package, if
// it has an index.json that is not empty.
type Shelf struct {
	Store store.Store
}

// Save is the function Save to the name dir of the Store.
func (h Shelf) Save(ctx context.Context, c *ccl.Comm, dir string, state any, ts []Tensor) error {
	dir, err := h.name(ctx, c, "Save to", dir)
	if err != nil {
		return err
	}
	return save(ctx, c, h.rack(ctx), dir, state, ts)
}

// Load is LoadWith of the name dir of the Store.
func (h Shelf) Load(ctx context.Context, c *ccl.Comm, dir string, state any, ts []Tensor, o LoadOptions) (*Report,
	error) {
	dir, err := h.name(ctx, c, "Load of", dir)
	if err != nil {
		return nil, err
	}
	return loadFrom(ctx, c, &shelved{h.rack(ctx), dir}, state, ts, o)
}

// Latest is the function Latest in the place dir of the Store. A Store that fails is an error: what
// could not be read is not passed over.
func (h Shelf) Latest(ctx context.Context, c *ccl.Comm, dir string) (latest string, passed []error, err error) {
	dir, err = h.name(ctx, c, "Latest in", dir)
	if err != nil {
		return "", nil, err
	}
	return latestOf(ctx, c, h.rack(ctx), dir)
}

// Keep is the function Keep in the place dir of the Store.
func (h Shelf) Keep(ctx context.Context, c *ccl.Comm, dir string, n int) error {
	dir, err := h.name(ctx, c, "Keep in", dir)
	if err != nil {
		return err
	}
	return keepIn(ctx, c, h.rack(ctx), dir, n)
}

// Forget is the function Forget in the place dir of the Store.
func (h Shelf) Forget(ctx context.Context, c *ccl.Comm, dir string, step int) error {
	dir, err := h.name(ctx, c, "Forget in", dir)
	if err != nil {
		return err
	}
	return forgetIn(ctx, c, h.rack(ctx), dir, step)
}

// NewSaver is the function NewSaver, with a Saver that saves to names of the Store.
func (h Shelf) NewSaver(ctx context.Context, c *ccl.Comm) (*Saver, error) {
	if err := h.check("in", "."); err != nil {
		return nil, fmt.Errorf("ckpt: NewSaver: %w", err)
	}
	return newSaver(ctx, c, func(ctx context.Context, dir string) (target, string) {
		return h.rack(ctx), path.Clean(filepath.ToSlash(dir))
	})
}

// Verify is the function Verify of the name dir of the Store. One process calls it.
func (h Shelf) Verify(ctx context.Context, dir string) (*Contents, error) {
	dir = path.Clean(filepath.ToSlash(dir))
	if err := h.check("", dir); err != nil {
		return nil, fmt.Errorf("ckpt: Verify of %s: %w", dir, err)
	}
	return verify(&shelved{h.rack(ctx), dir})
}

// name is dir as a name in the Store; what is wrong with it all ranks are told.
func (h Shelf) name(ctx context.Context, c *ccl.Comm, what, dir string) (string, error) {
	dir = path.Clean(filepath.ToSlash(dir))
	return dir, same.Args(ctx, c, "ckpt: "+what+" "+dir, h.check(what, dir))
}

func (h Shelf) check(what, dir string) error {
	if h.Store == nil {
		return errors.New("the Shelf has no Store")
	}
	if !fs.ValidPath(dir) || dir == "." && !strings.HasSuffix(what, "in") {
		return fmt.Errorf("%q is no name in a Store", dir)
	}
	return nil
}

// rack is a Store as what checkpoints are written to, found in and removed from.
type rack struct{ r *slots.Rack }

func (h Shelf) rack(ctx context.Context) *rack {
	return &rack{slots.New(ctx, h.Store, func(o store.Object) (map[string]bool, error) {
		ix, err := parseIndex(io.NewSectionReader(o, 0, o.Size()))
		if err != nil {
			return nil, err
		}
		names := map[string]bool{}
		for _, f := range ix.Files {
			names[f.Name] = true
		}
		return names, nil
	})}
}

// shelved is a checkpoint in a Store.
type shelved struct {
	k   *rack
	dir string
}

func (p *shelved) path(file string) string { return path.Join(p.dir, file) }

func (p *shelved) open(file string, most int64) (opened, int64, error) {
	get := func() (store.Object, error) { return p.k.r.Open(p.path(file)) }
	if file == indexName {
		get = func() (store.Object, error) { return p.k.r.Index(p.dir) }
	}
	o, err := get()
	if err != nil {
		return nil, 0, err
	}
	if o.Size() > most {
		err := fmt.Errorf("open %s: it has %d bytes, more than the %d that are read", p.path(file), o.Size(), most)
		return nil, 0, errors.Join(err, o.Close())
	}
	return o, o.Size(), nil
}

func (p *shelved) lacks(file string) bool { return p.k.r.Lacks(p.path(file)) }

// Failed is catalog's.
func (k *rack) Failed() error { return k.r.Failed() }

func (k *rack) at(dir, name string) source { return &shelved{k, path.Join(dir, name)} }

func (k *rack) list(dir string) (list []step, err error) {
	names, err := k.r.Live(dir)
	for _, name := range names {
		if number, ok := stepOf(name); ok {
			list = append(list, step{sequenceOf(k.at(dir, name)), number, name})
		}
	}
	return list, err
}

func (k *rack) clear(dir string, names []string, goes func(entryName) bool) error {
	return k.r.Clear(dir, names, func(name string, sequence int64) bool {
		number, ok := stepOf(name)
		return ok && goes(entryName{of: name, number: number, tmp: true, sequence: sequence})
	})
}

func (k *rack) take(dir string) (tmp string, sequence int64, err error) {
	_, isStep := stepOf(path.Base(dir))
	tmp, sequence, err = k.r.Take(dir, isStep, func() bool {
		bad := whole(&shelved{k, dir})
		return isStep && bad != nil && !errors.Is(bad, errFormat)
	})
	return tmp, sequence, told(dir, err)
}

// told is err about dir, as it is about a directory.
func told(dir string, err error) error {
	if errors.Is(err, slots.ErrTaken) {
		return taken(dir)
	}
	return err
}

func (k *rack) create(dir, tmp, name string, size int64, f func(io.Writer) error) (file, error) {
	name = slots.PartName(name, tmp)
	var s *summer
	err := k.r.Put(path.Join(dir, name), size, func(w io.Writer) error {
		s = &summer{to: w}
		return f(s)
	})
	if err != nil {
		return file{}, fmt.Errorf("%s: %w", path.Join(dir, name), err)
	}
	return file{name, s.n, s.sums}, nil
}

func (k *rack) publish(dir, tmp string, ix *index) error {
	var size counter
	if err := ix.write(&size); err != nil {
		return err
	}
	return told(dir, k.r.Publish(dir, tmp, int64(size), ix.write))
}

func (k *rack) discard(dir, tmp string) { k.r.Discard(dir, tmp) }

func (k *rack) lost(_ string, err error) error { return err }
