// Package slots decides, in a Store, which of several attempts to save a checkpoint wins.
//
// The objects of the checkpoint NAME are NAME/part-I-of-N.MARK.safetensors and its index. Each Save
// of NAME is an attempt, with a mark: SLOT-SEQUENCE-RANDOM. A slot is decided once there is an
// object NAME/index.SLOT.json, or NAME/index.json of slot 0: it is the index of the attempt that
// has won, or an empty one, if none has, or if the checkpoint was removed. An attempt takes the slot
// after the last that is decided, and puts its index fresh. So it can win once, and never after its
// slot was decided otherwise. NAME is what the last slot says. Once a slot is decided, only an empty
// index is put there. So parts of attempts that have lost can be deleted whenever they are seen.
//
// An empty index has a text of its own. What has no bytes was cut off: the checkpoint is damaged, and
// was not removed.
package slots

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"time"

	"github.com/goccl/goccl/train/ckpt/store"
)

const (
	indexName  = "index.json"
	partEnd    = ".safetensors"
	settleTime = 30 * time.Second // for what is done after a failure

	maxSlot     = 999_999_999
	maxSequence = 1<<53 - 1 // of an index
)

var (
	// ErrTaken is the error of an attempt at a name that has a checkpoint.
	ErrTaken = fmt.Errorf("the name is taken: %w", fs.ErrExist)
	// ErrRemoved is the error of an attempt whose slot another job has given to nobody.
	ErrRemoved = fmt.Errorf("another job that saves to the same name has removed what this one writes: %w", fs.ErrExist)
)

// empty is what an empty index has, which is shorter than any other.
const empty = "removed\n"

// Empty reports whether an index of so many bytes is an empty one, unless it was cut off there: IsEmpty tells.
func Empty(size int64) bool { return size == int64(len(empty)) }

// IsEmpty reports whether an index is an empty one.
func IsEmpty(o store.Object) (bool, error) {
	if !Empty(o.Size()) {
		return false, nil
	}
	b := make([]byte, len(empty))
	if n, err := o.ReadAt(b, 0); n < len(b) {
		return false, err
	}
	return string(b) == empty, nil
}

// lot is what a Store has of one name.
type lot struct {
	name      string
	last      int  // the last slot that is decided; -1: none
	removed   bool // what is there is an empty index
	sequences []int64
}

func (l *lot) live() bool { return l.last >= 0 && !l.removed }

// slot is the name of the object that decides a slot.
func (l *lot) slot(n int) string {
	if n == 0 {
		return path.Join(l.name, indexName)
	}
	return path.Join(l.name, fmt.Sprintf("index.%d.json", n))
}

// Rack is a Store for as long as a context lasts.
type Rack struct {
	ctx    context.Context
	s      store.Store
	files  func(index store.Object) (map[string]bool, error)
	keep   bool  // the parts of the attempt: it has won, or may have
	failed error // the first of the Store that is not about what is there
}

// New makes a Rack of s. files reads which files an index names.
func New(ctx context.Context, s store.Store, files func(store.Object) (map[string]bool, error)) *Rack {
	return &Rack{ctx: ctx, s: s, files: files}
}

// Failed is the first error of the Store that says nothing about what is there: what was not opened,
// listed or read then may be whole.
func (k *Rack) Failed() error { return k.failed }

// noted keeps the first such error.
func (k *Rack) noted(err error) error {
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, fs.ErrExist) && k.failed == nil {
		k.failed = err
	}
	return err
}

// steps is the beginning of the names of steps in dir.
func steps(dir string) string { return path.Join(dir, "step-") }

// look lists what there is of names that begin with prefix.
func (k *Rack) look(prefix string) (map[string]*lot, error) {
	es, err := k.s.List(k.ctx, prefix)
	if k.noted(err) != nil {
		return nil, err
	}
	lots := map[string]*lot{}
	for _, e := range es {
		m, part, ok := named(e.Name)
		if !ok {
			continue
		}
		l := lotOf(lots, path.Dir(e.Name))
		if part {
			l.sequences = append(l.sequences, m.sequence)
		} else if m.slot > l.last {
			l.last, l.removed = m.slot, Empty(e.Size)
		}
	}
	for _, l := range lots { // one without parts, as most that were removed, has nothing that a cut index could lose
		if l.removed && len(l.sequences) > 0 {
			if l.removed, err = k.isEmpty(l.slot(l.last)); err != nil {
				return nil, err
			}
		}
	}
	return lots, nil
}

// isEmpty reports whether an object is an empty index.
func (k *Rack) isEmpty(name string) (is bool, err error) {
	o, err := k.Open(name)
	if err != nil {
		return false, err
	}
	is, err = IsEmpty(o)
	return is, errors.Join(err, o.Close())
}

func lotOf(lots map[string]*lot, name string) *lot {
	l := lots[name]
	if l == nil {
		l = &lot{name: name, last: -1}
		lots[name] = l
	}
	return l
}

// Live lists the names in dir that begin as those of steps do, and have a checkpoint.
func (k *Rack) Live(dir string) (names []string, err error) {
	lots, err := k.look(steps(dir))
	for name, l := range lots {
		if l.live() && path.Dir(name) == dir {
			names = append(names, path.Base(name))
		}
	}
	return names, err
}

// Index opens the index of the checkpoint dir.
func (k *Rack) Index(dir string) (store.Object, error) {
	lots, err := k.look(dir + "/")
	if err != nil {
		return nil, err
	}
	l := lots[dir]
	if l == nil || !l.live() {
		return nil, &fs.PathError{Op: "open", Path: path.Join(dir, indexName), Err: fs.ErrNotExist}
	}
	return k.Open(l.slot(l.last))
}

// Open opens an object.
func (k *Rack) Open(name string) (store.Object, error) {
	o, err := k.s.Open(k.ctx, name)
	if k.noted(err) != nil {
		return nil, err
	}
	return &object{o, k, name}, nil
}

// Lacks reports whether there is no such object.
func (k *Rack) Lacks(name string) bool {
	o, err := k.Open(name)
	if err == nil {
		err = o.Close()
	}
	return errors.Is(err, fs.ErrNotExist)
}

// object is an Object whose errors are noted.
type object struct {
	store.Object
	k    *Rack
	name string
}

func (o *object) ReadAt(b []byte, at int64) (int, error) {
	n, err := o.Object.ReadAt(b, at)
	if err != nil && !errors.Is(err, io.EOF) && !o.gone() {
		_ = o.k.noted(err)
	}
	return n, err
}

// gone reports whether the object was deleted, or another was put in its place, since it was opened.
func (o *object) gone() bool {
	now, err := o.k.s.Open(o.k.ctx, o.name)
	if err != nil {
		return errors.Is(err, fs.ErrNotExist)
	}
	defer now.Close()
	return now.Size() != o.Size()
}

// Ended tells a store.Ender that the Load has read all.
func (k *Rack) Ended() {
	if e, is := k.s.(store.Ender); is {
		e.Ended()
	}
}

// Put puts a part.
func (k *Rack) Put(name string, size int64, write func(io.Writer) error) error {
	return k.s.Put(k.ctx, name, size, false, write)
}

// Take begins an attempt at dir, and returns its mark. sequence is one more than that of any
// attempt at a step beside it, or 0 if dir is no step. A checkpoint in its place is ErrTaken, unless
// damaged reports that it may give way.
func (k *Rack) Take(dir string, step bool, damaged func() bool) (string, int64, error) {
	if !fs.ValidPath(dir) || dir == "." {
		return "", 0, fmt.Errorf("%q is no name in a Store", dir)
	}
	prefix := dir + "/"
	if step {
		prefix = steps(path.Dir(dir))
	}
	lots, err := k.look(prefix)
	if err != nil {
		return "", 0, err
	}
	l := lotOf(lots, dir)
	if l.live() {
		gives := damaged()
		if k.failed != nil { // what could not be read may be whole
			return "", 0, k.failed
		}
		if !gives {
			return "", 0, ErrTaken
		}
		if err := k.bury(l, false); err != nil {
			return "", 0, err
		}
	}
	m := mark{slot: l.last + 1}
	if step {
		for name, o := range lots {
			for _, s := range o.sequences {
				if path.Dir(name) == path.Dir(dir) {
					m.sequence = max(m.sequence, s)
				}
			}
		}
		m.sequence++
	}
	if m.slot > maxSlot || m.sequence > maxSequence { // which the names of objects would not say
		return "", 0, fmt.Errorf("%s: slot %d, sequence %d: the store has objects that no Save has put there", dir, m.slot,
			m.sequence)
	}
	b := make([]byte, 8)
	_, _ = rand.Read(b) // which never fails
	m.random = hex.EncodeToString(b)
	return m.String(), m.sequence, nil
}

// bury puts an empty index into the slot that is last, or, if it is fresh, into the one after it: fs.ErrExist if that
// is decided.
func (k *Rack) bury(l *lot, fresh bool) error {
	slot := l.last
	if fresh {
		slot++
	}
	err := k.s.Put(k.ctx, l.slot(slot), int64(len(empty)), fresh, func(w io.Writer) error {
		_, err := io.WriteString(w, empty)
		return err
	})
	if k.noted(err) == nil {
		l.last, l.removed = slot, true
	}
	return err
}

// Publish puts the index of an attempt, of size bytes, and removes what attempts that have lost to it have left. An
// error is ErrTaken or ErrRemoved, or the Store's; that may say that the checkpoint may be there.
func (k *Rack) Publish(dir, attempt string, size int64, write func(io.Writer) error) error {
	m, _, _ := named("part-00001-of-00001." + attempt + partEnd)
	l := &lot{name: dir, last: m.slot - 1}
	if err := k.s.Put(k.ctx, l.slot(m.slot), size, true, write); err != nil {
		if err := k.settle(l, attempt, err); err != nil {
			return err
		}
	}
	k.keep = true
	_ = k.clean(dir+"/", func(string, int64) bool { return false }) // or Keep does
	return nil
}

// settle says what has become of an attempt whose index was put with an error: nil if it has won.
func (k *Rack) settle(l *lot, attempt string, failed error) error {
	after, cancel := k.aftermath()
	defer cancel()
	slot := l.slot(l.last + 1)
	err := failed
	if !errors.Is(err, fs.ErrExist) { // the index may be there, or come later, unless the slot is decided otherwise
		if err = after.bury(l, true); err == nil {
			return failed
		}
	}
	k.keep = true
	var names map[string]bool
	if errors.Is(err, fs.ErrExist) {
		var o store.Object
		if o, err = after.s.Open(after.ctx, slot); err == nil {
			var none bool
			if none, err = IsEmpty(o); err == nil && !none {
				names, err = k.files(o)
			}
			err = errors.Join(err, o.Close())
		}
	}
	if err != nil {
		if errors.Is(failed, fs.ErrExist) { // that would say that another's is there
			failed = errors.New(failed.Error())
		}
		return fmt.Errorf("%w; whether %s is there could not be found out: %w", failed, l.name, err)
	}
	for name := range names {
		if of(attempt, name) {
			return nil
		}
	}
	k.keep = false
	if len(names) == 0 && !errors.Is(failed, fs.ErrExist) { // the empty index may be this attempt's own
		return failed
	}
	if len(names) == 0 {
		return ErrRemoved
	}
	return ErrTaken
}

// aftermath is k for what is done after a failure, be it the end of the context.
func (k *Rack) aftermath() (*Rack, context.CancelFunc) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(k.ctx), settleTime)
	return New(ctx, k.s, k.files), cancel
}

// Discard removes the parts of an attempt that has failed, unless Publish had no error, or could not
// say what came of it.
func (k *Rack) Discard(dir, attempt string) {
	if k.keep {
		return
	}
	after, cancel := k.aftermath()
	defer cancel()
	_ = after.remove(dir+"/", func(object string) bool { return of(attempt, object) }) // or Keep does
}

// Clear removes checkpoints in dir, by their names, and attempts at steps that are unfinished, if goes says so of the
// name and the sequence. Each slot is decided before anything of it is deleted.
func (k *Rack) Clear(dir string, names []string, goes func(name string, sequence int64) bool) error {
	lots, err := k.look(steps(dir))
	if err != nil {
		return err
	}
	for _, name := range names {
		if l := lots[path.Join(dir, name)]; l != nil && l.live() {
			if err := k.bury(l, false); err != nil {
				return err
			}
		}
	}
	return k.clean(steps(dir), func(name string, sequence int64) bool {
		return path.Dir(name) == dir && goes(path.Base(name), sequence)
	})
}

// clean removes the parts of attempts that have lost, and of those that are unfinished and go.
func (k *Rack) clean(prefix string, goes func(name string, sequence int64) bool) error {
	lots, err := k.look(prefix)
	if err != nil {
		return err
	}
	won := map[string]map[string]bool{}
	return k.remove(prefix, func(object string) bool {
		m, part, ok := named(object)
		l := lotOf(lots, path.Dir(object))
		switch {
		case !ok:
			return false
		case !part: // an index that was not put to its end
			return m.slot <= l.last
		case m.slot > l.last: // if the slot is decided otherwise meanwhile: the next time
			return m.slot == l.last+1 && goes(l.name, m.sequence) && k.bury(l, true) == nil
		case !l.live() || m.slot < l.last:
			return true
		}
		if _, read := won[l.name]; !read {
			won[l.name] = k.winner(l)
		}
		return won[l.name] != nil && !won[l.name][path.Base(object)]
	})
}

// winner are the files of the checkpoint; nil if they could not be read.
func (k *Rack) winner(l *lot) map[string]bool {
	o, err := k.Open(l.slot(l.last))
	if err != nil {
		return nil
	}
	defer o.Close()
	names, err := k.files(o)
	if err != nil {
		return nil
	}
	return names
}

// remove deletes parts, and what is left of objects that were not put to their end.
func (k *Rack) remove(prefix string, gone func(object string) bool) error {
	es, err := k.s.List(k.ctx, prefix)
	if k.noted(err) != nil {
		return err
	}
	for _, e := range es {
		if _, part, _ := named(e.Name); part && gone(e.Name) {
			err = errors.Join(err, k.noted(k.s.Delete(k.ctx, e.Name)))
		}
	}
	if s, is := k.s.(store.Sweeper); is {
		err = errors.Join(err, k.noted(s.Sweep(k.ctx, prefix, gone)))
	}
	return err
}
