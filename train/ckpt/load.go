package ckpt

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ckpt/internal/content"
	"github.com/goccl/goccl/train/ckpt/internal/float"
	"github.com/goccl/goccl/train/ckpt/internal/relay"
	"github.com/goccl/goccl/train/internal/same"
)

// Load fills the Data of ts from dir, whatever the layout it was saved in, and state, if not nil,
// as json.Unmarshal does; a State has that of each rank, too. It verifies the checksums of the
// blocks that it reads. A tensor that is missing, or of another shape or type, or damaged, is an
// error that names it and its file, on every rank; ts are then undefined.
//
// [LoadWith] loads a part, into other types, or by other names. Load also loads model.safetensors, or
// else the files that a model.safetensors.index.json beside them names, as Export and Hugging Face
// write them. These have no checksums, and leave state as it is.
//
// A file of dir may be a link to another one in dir. Where dir is a snapshot in Hugging Face's
// cache, models--NAME/snapshots/REVISION, its links may lead anywhere in models--NAME. What leads
// out of there is refused: whoever has made a checkpoint could name any file of the user's.
func Load(ctx context.Context, c *ccl.Comm, dir string, state any, ts []Tensor) error {
	_, err := LoadWith(ctx, c, dir, state, ts, LoadOptions{})
	return err
}

func loadFrom(ctx context.Context, c *ccl.Comm, src source, state any, ts []Tensor, o LoadOptions) (*Report, error) {
	dir := src.path("")
	what := "ckpt: Load of " + dir
	loaded := hosted(ts, nil, o.Partial)
	want, data, err := describe(loaded)
	if err := same.Args(ctx, c, what, err, "the directory "+dir, o.String()); err != nil {
		return nil, err
	}
	var own io.ReadCloser
	var length int64
	if c.Rank() == 0 {
		if own, length, err = readerOf(src, o.File); err == nil {
			defer own.Close()
		}
	}
	if err := same.Args(ctx, c, what, err); err != nil {
		return nil, err
	}
	from, err := relay.New(ctx, c, own, length, cmp.Or(o.atOnce, atOnce))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	ix, err := parseIndex(from)
	if failed := from.Drain(); failed != nil {
		return nil, fmt.Errorf("%s: %w", what, failed)
	}
	err = cmp.Or(from.Lost, err)
	var missing []string
	if err == nil {
		want, data, missing = o.find(ix, want, data)
		err = ix.fill(src, want, data, o.Convert)
	}
	for i := range want {
		if want[i].Type == "BOOL" { // of which Go has two
			for k, b := range data[i].B {
				data[i].B[k] = min(b, 1)
			}
		}
	}
	if err == nil {
		err = putBack(ts, loaded)
	}
	if err == nil {
		err = ix.states(src, state, c.Rank(), c.Size())
	}
	if s, is := src.(*shelved); is {
		s.k.r.Ended()
	}
	if err := same.Args(ctx, c, what, err); err != nil || !o.Partial {
		return &Report{}, err
	}
	r, err := ix.report(ctx, c, want, missing)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	return r, nil
}

// fill reads what is wanted into data, of another type of floating point, too, if convert says so.
func (ix *index) fill(src source, want []piece, data []content.Content, convert bool) error {
	reads := make([][]read, len(ix.Files))
	for i, w := range want {
		t, ok := ix.Tensors[w.Name]
		if o, is := ix.Others[w.Name]; !ok && is {
			return fmt.Errorf("tensor %q is %v in %s, which Load does not know", w.Name, o, ix.name(src))
		}
		if !ok {
			return fmt.Errorf("%s has no tensor %q", ix.name(src), w.Name)
		}
		if t.Type != w.Type && !(convert && float.Convertible(t.Type, w.Type)) || !slices.Equal(t.Shape, w.Shape) {
			return fmt.Errorf("tensor %q is %s %v in %s, but %s %v is wanted", w.Name, t.Type, t.Shape, ix.name(src), w.Type,
				w.Shape)
		}
		from, size := dtypes[t.Type], dtypes[w.Type]
		var got []run
		for _, p := range ix.of[w.Name] {
			for _, r := range overlap(&w, &p) {
				got = append(got, r)
				reads[p.File] = append(reads[p.File],
					read{p.At + int64(r.src*from), data[i].Part(r.dst*size, (r.dst+r.n)*size), w.Name, t.Type, w.Type})
			}
		}
		slices.SortFunc(got, func(a, b run) int { return cmp.Compare(a.dst, b.dst) })
		end := 0
		for _, r := range got {
			if r.dst != end {
				break
			}
			end += r.n
		}
		if end < w.Hi-w.Lo {
			return fmt.Errorf("%s lacks element %d of the wanted part of tensor %q, or has it twice", ix.name(src), w.Lo+end,
				w.Name)
		}
	}
	for f, rs := range reads {
		if err := readPart(src, &ix.Files[f], rs); err != nil {
			return ix.beside(src, f, err)
		}
	}
	return nil
}

// beside is the error about one file of a checkpoint, and says how the others are.
func (ix *index) beside(src source, bad int, err error) error {
	others := &index{Files: slices.Delete(slices.Clone(ix.Files), bad, bad+1)}
	if len(others.Files) == 0 {
		return err
	}
	also, good := others.look(src)
	if also != nil {
		return fmt.Errorf("%w; also %s; whole by size: %s", err, some(also), some(good))
	}
	return fmt.Errorf("%w; whole by size: %s", err, some(good))
}

// read wants dst, of type to, from byte at of a part on, where type from is.
type read struct {
	at       int64
	dst      content.Content
	name     string
	from, to string
}

// readPart does the reads of one part, and verifies each block that they touch.
func readPart(src source, f *file, rs []read) (err error) {
	if len(rs) == 0 {
		return nil
	}
	p, err := openPart(src, f)
	if err != nil {
		return fmt.Errorf("tensor %q: %w", rs[0].name, err)
	}
	defer p.Close()
	slices.SortFunc(rs, func(a, b read) int { return cmp.Compare(a.at, b.at) })
	for _, r := range rs {
		if err := p.as(r); err != nil {
			return fmt.Errorf("tensor %q: %w", r.name, err)
		}
	}
	return nil
}
