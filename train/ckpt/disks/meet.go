package disks

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/train/ckpt/internal/fetch"
	"github.com/goccl/goccl/train/ckpt/internal/indexes"
	"github.com/goccl/goccl/train/ckpt/internal/slots"
	"github.com/goccl/goccl/train/ckpt/store"
	"github.com/goccl/goccl/train/internal/same"
)

// meet tells all ranks which objects with a prefix the disks have, and makes the indexes alike on
// all of them. It is collective.
func (d *Disks) meet(ctx context.Context, what, prefix string) (*view, error) {
	mine, err := d.holds(ctx, prefix)
	if err := same.Args(ctx, d.c, what, d.onDisk(err), "the names "+prefix); err != nil {
		return nil, err
	}
	tell, alike, err := d.compare(ctx, mine)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	all, err := ccl.AllGatherValues(ctx, d.c, tell)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", what, err)
	}
	v := d.unite(all)
	everyone := make([]int, d.c.Size())
	for r := range everyone {
		everyone[r] = r
	}
	for _, h := range alike {
		v.all[h.Name] = object{h, everyone}
	}
	v.names, v.mine = sorted(v.all), map[string]bool{}
	for _, h := range mine {
		v.mine[h.Name] = true
	}
	todo, unlike := versions(all)
	if len(todo) == 0 && len(unlike) == 0 {
		return v, nil
	}
	err = v.serve(ctx, func() error {
		for _, name := range sorted(unlike) {
			one, err := v.chosen(ctx, unlike[name])
			if err != nil {
				return err
			}
			todo = append(todo, one)
		}
		for _, o := range todo {
			if !slices.Contains(o.from, d.c.Rank()) {
				if err := v.pull(ctx, o, false); err != nil {
					return err
				}
			}
		}
		return nil
	})
	if err := same.Args(ctx, d.c, what, err); err != nil {
		return nil, err
	}
	for _, o := range todo { // all ranks chose alike, by what they read alike
		v.all[o.Name] = object{o.held, everyone}
	}
	return v, nil
}

// compare leaves out of what this rank tells the others the indexes, if those of all disks are alike:
// there is one for each checkpoint that was ever saved.
func (d *Disks) compare(ctx context.Context, mine []held) (tell, alike []held, err error) {
	sum := fnv.New64a()
	for _, h := range mine {
		if _, part, ok := slots.Named(h.Name); ok && !part && !h.Left {
			fmt.Fprintf(sum, "%q %d %d %v\n", h.Name, h.Size, h.Sum, h.Good)
			alike = append(alike, h)
		} else {
			tell = append(tell, h)
		}
	}
	sums := []uint64{sum.Sum64(), ^sum.Sum64()}
	if err := ccl.AllReduce(ctx, d.c, sums, sums, ccl.Max); err != nil {
		return nil, nil, err
	}
	if sums[0] != ^sums[1] {
		return mine, nil, nil
	}
	return tell, alike, nil
}

// sorted are the keys of m, in order.
func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// holds lists what this rank's disk has.
func (d *Disks) holds(ctx context.Context, prefix string) (list []held, err error) {
	es, err := d.local.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	for _, e := range es {
		h := held{Name: e.Name, Size: e.Size}
		if _, part, ok := slots.Named(e.Name); ok && !part {
			if k, read := d.known[e.Name]; read && k.Size == e.Size {
				h = k
			} else if err := d.sum(ctx, &h); errors.Is(err, fs.ErrNotExist) { // deleted since then
				continue
			} else if err != nil {
				return nil, fmt.Errorf("read %s: %w", e.Name, err)
			}
			d.known[e.Name] = h
		}
		list = append(list, h)
	}
	if s, is := d.local.(store.Sweeper); is {
		err = s.Sweep(ctx, prefix, func(name string) bool {
			list = append(list, held{Name: name, Left: true})
			return false
		})
	}
	return list, err
}

// sum reads an index, and notes its size and checksum.
func (d *Disks) sum(ctx context.Context, h *held) error {
	o, err := d.local.Open(ctx, h.Name)
	if err != nil {
		return err
	}
	defer o.Close()
	h.Size, h.Sum, h.Good, err = indexes.Sum(o)
	return err
}

// versions compares the indexes of all disks. todo has the index that counts, for each name that some
// disk lacks or has in another version: an empty version, since the slot was decided so, else the
// good one. unlike has the names with several good versions.
func versions(all [][]held) (todo []object, unlike map[string][]object) {
	byName := map[string][]object{}
	for r, list := range all {
		for _, h := range list {
			if _, part, ok := slots.Named(h.Name); !ok || part || h.Left {
				continue
			}
			vs := byName[h.Name]
			at := slices.IndexFunc(vs, func(o object) bool { return o.held == h })
			if at < 0 {
				at, vs = len(vs), append(vs, object{held: h})
			}
			vs[at].from = append(vs[at].from, r)
			byName[h.Name] = vs
		}
	}
	unlike = map[string][]object{}
	for _, name := range sorted(byName) {
		vs := byName[name]
		if at := slices.IndexFunc(vs, func(o object) bool { return slots.Empty(o.Size) }); at >= 0 {
			vs = vs[at : at+1]
		} else if at := slices.IndexFunc(vs, func(o object) bool { return o.Good }); at >= 0 {
			vs = slices.DeleteFunc(vs, func(o object) bool { return !o.Good })
		} else { // all versions are damaged
			vs = vs[:1]
		}
		if len(vs) > 1 {
			unlike[name] = vs
		} else if len(vs[0].from) < len(all) {
			todo = append(todo, vs[0])
		}
	}
	return todo, unlike
}

// chosen is the version of an index that counts: the one whose parts are there. If that holds for two,
// two jobs have saved one step on disks of which none was in both.
func (v *view) chosen(ctx context.Context, vs []object) (object, error) {
	var whole []object
	for _, o := range vs {
		files, err := indexes.Files(v.open(ctx, o))
		if err != nil {
			return o, err
		}
		if !slices.ContainsFunc(files, func(f indexes.File) bool {
			had, ok := v.all[path.Join(path.Dir(o.Name), f.Name)]
			return !ok || had.Size != f.Size
		}) {
			whole = append(whole, o)
		}
	}
	if len(whole) > 1 {
		return whole[0], fmt.Errorf("the disks of ranks %d and %d have different whole checkpoints %s, which two jobs have saved apart: move one of them away",
			whole[0].from[0], whole[1].from[0], path.Dir(whole[0].Name))
	}
	return append(whole, vs...)[0], nil
}

// learn notes the checksums of the parts of a checkpoint, by its index. If that cannot be read, the
// Load that follows says so.
func (v *view) learn(ctx context.Context, name string) {
	last, at := "", -1
	for index, o := range v.all {
		if slot, part, ok := slots.Named(index); ok && !part && path.Dir(index) == name && slot > at {
			last, at = index, slot
			if slots.Empty(o.Size) {
				last = ""
			}
		}
	}
	o, err := v.d.local.Open(ctx, cmp.Or(last, name))
	if err != nil {
		return
	}
	defer o.Close()
	files, _ := indexes.Files(o)
	for _, f := range files {
		v.sums[path.Join(name, f.Name)] = f.Sums
	}
}

// pull puts an object of another disk on this rank's. With fresh, what is there already must be alike.
func (v *view) pull(ctx context.Context, o object, fresh bool) error {
	d, from := v.d, v.open(ctx, o)
	defer from.Close()
	delete(d.known, o.Name)
	err := d.local.Put(ctx, o.Name, o.Size, fresh, func(w io.Writer) error {
		_, err := io.CopyBuffer(struct{ io.Writer }{w}, io.NewSectionReader(from, 0, o.Size),
			make([]byte, min(fetch.Block, max(o.Size, 1))))
		return err
	})
	if fresh && errors.Is(err, fs.ErrExist) {
		had := held{Name: o.Name}
		if bad := d.sum(ctx, &had); bad == nil && had.Size == o.Size && had.Sum == o.Sum {
			return nil
		}
	}
	return d.onDisk(err)
}
