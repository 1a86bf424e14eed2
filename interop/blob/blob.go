// Package blob keeps checkpoints in an object store: what gocloud.dev/blob opens, such as Amazon S3
// and servers that speak its protocol, Google Cloud Storage and Azure Blob Storage.
//
//	b, err := blob.OpenBucket(ctx, "s3://models?region=eu-central-1") // gocloud.dev/blob; import its s3blob
//	s := ckpt.Shelf{Store: cloud.New(b, nil)}                         // this package
//	err = s.Save(ctx, c, ckpt.Step("run", step), state, tensors)
//
// Objects that are larger than Options.Part are uploaded in parts. An object is there once it is
// whole. The index of a checkpoint is put by one request under the condition that there is none, so
// the store must support that: S3 and Google's and Azure's stores do, by If-None-Match and the
// like. A server that ignores the condition may let two jobs save one step, and so may fileblob,
// which looks and then renames: store.Dir keeps checkpoints in a directory.
package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
	"time"

	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"

	"github.com/goccl/goccl/train/ckpt/store"
)

// Options say how an object store is used. Nil and zeros are usual values.
type Options struct {
	// Part is how many bytes of a large object go in one request: 16 MiB, and as much more as an
	// object of at most 10,000 parts takes. Parallel of them are in memory.
	Part int
	// Parallel is how many parts of an object are under way at once: 4.
	Parallel int
	// Timeout is how long an attempt may go without any progress: 30 seconds. An upload makes progress
	// when the driver takes bytes, so a link must carry Parallel parts in that time, and one more.
	Timeout time.Duration
	// Attempts is how often what fails is tried: 4 times, with pauses of 0.2 seconds and twice as long
	// each time. What drivers of gocloud.dev try by themselves comes on top.
	Attempts int
	// Sweep removes uploads that a killed process has left, of those for which gone returns true, as
	// uploads.S3 does. Nil: they stay until a rule of the bucket's removes them.
	Sweep func(ctx context.Context, prefix string, gone func(name string) bool) error
}

const (
	pause    = 200 * time.Millisecond
	mostPart = 10_000   // of a multipart upload
	inOne    = 64 << 20 // the largest object that a condition has go in one request
)

// bucket is a Store.
type bucket struct {
	b *blob.Bucket
	o Options
}

// New makes a Store of b, which stays the caller's to close.
func New(b *blob.Bucket, o *Options) store.Store {
	s := &bucket{b: b}
	if o != nil {
		s.o = *o
	}
	for _, d := range []struct {
		v *int
		n int
	}{{&s.o.Part, 16 << 20}, {&s.o.Parallel, 4}, {&s.o.Attempts, 4}} {
		if *d.v <= 0 {
			*d.v = d.n
		}
	}
	if s.o.Timeout <= 0 {
		s.o.Timeout = 30 * time.Second
	}
	return s
}

// watch is a context that ends unless something moves.
type watch struct {
	context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	after  time.Duration
}

var errStalled = errors.New("the object store does not answer")

func (s *bucket) watch(ctx context.Context) *watch {
	w := &watch{after: s.o.Timeout}
	w.Context, w.cancel = context.WithCancelCause(ctx)
	w.timer = time.AfterFunc(w.after, func() { w.cancel(fmt.Errorf("%w for %v", errStalled, w.after)) })
	return w
}

func (w *watch) moved() { w.timer.Reset(w.after) }

func (w *watch) end() {
	w.timer.Stop()
	w.cancel(nil)
}

// why is err, with the reason for which w has ended.
func (w *watch) why(err error) error {
	if cause := context.Cause(w); err != nil && errors.Is(cause, errStalled) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}

// try does f until it succeeds, or fails for good. op and name are what an error says.
func (s *bucket) try(ctx context.Context, op, name string, f func(w *watch) error) error {
	for k := 1; ; k++ {
		w := s.watch(ctx)
		err := w.why(f(w))
		w.end()
		if err == nil {
			return nil
		}
		final := ctx.Err() != nil
		switch code := gcerrors.Code(err); {
		case code == gcerrors.NotFound && (op == "open" || op == "read" || op == "delete"):
			if s.absent(ctx, name) {
				err, final = fmt.Errorf("%w: %w", fs.ErrNotExist, err), true
			}
		case (code == gcerrors.FailedPrecondition || code == gcerrors.AlreadyExists) && op == "put":
			err, final = fmt.Errorf("%w: %w", fs.ErrExist, err), true
		case code == gcerrors.InvalidArgument || code == gcerrors.PermissionDenied || code == gcerrors.Unimplemented:
			final = true
		}
		var bad *fault
		if errors.As(err, &bad) {
			final = true
		}
		if final || k == s.o.Attempts {
			return &fs.PathError{Op: op, Path: name, Err: err}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause << (k - 1)):
		}
	}
}

// absent reports whether there is no object of that name, as far as a list says. gcerrors.NotFound
// alone does not: that may be the bucket's error, and s3blob makes it of each error of a request
// whose text has "301", such as a port.
func (s *bucket) absent(ctx context.Context, name string) bool {
	w := s.watch(ctx)
	defer w.end()
	for it := s.b.List(&blob.ListOptions{Prefix: name}); ; w.moved() {
		if o, err := next(w, it); err != nil || o.Key == name {
			return errors.Is(err, io.EOF)
		}
	}
}

// next is the next of a list. s3blob panics at what a server lists without a date.
func next(ctx context.Context, it *blob.ListIterator) (o *blob.ListObject, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &fault{fmt.Errorf("what the object store lists cannot be read: %v", p)}
		}
	}()
	return it.Next(ctx)
}

// fault is an error that comes again: of what calls the Store, or of what it says.
type fault struct{ error }

func (f *fault) Unwrap() error { return f.error }

// checked is an error unless name is one of an object.
func checked(op, name string) error {
	if !fs.ValidPath(name) || name == "." {
		return &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	return nil
}

// Put is Store's.
func (s *bucket) Put(ctx context.Context, name string, size int64, fresh bool, write func(io.Writer) error) error {
	if err := checked("put", name); err != nil {
		return err
	}
	part := max(int64(s.o.Part), (size+mostPart-1)/mostPart)
	if fresh && size <= inOne {
		part = max(part, size+1)
	}
	return s.try(ctx, "put", name, func(w *watch) error {
		to, err := s.b.NewWriter(w, name, &blob.WriterOptions{BufferSize: int(part), MaxConcurrency: s.o.Parallel,
			ContentType: "application/octet-stream", DisableContentTypeDetection: true, IfNotExist: fresh})
		if err != nil {
			return err
		}
		counted := &counting{w: w, to: to}
		err = write(counted)
		if err == nil && counted.n != size {
			err = fmt.Errorf("%d bytes were written, and %d announced", counted.n, size)
		}
		if err != nil {
			w.cancel(nil) // so that Close leaves nothing
			failed := counted.err
			_ = to.Close()
			if failed != nil { // of the storage
				return failed
			}
			return &fault{err}
		}
		w.moved()
		return to.Close()
	})
}

// counting is a writer whose progress is noted.
type counting struct {
	w   *watch
	to  io.Writer
	n   int64
	err error
}

func (c *counting) Write(b []byte) (int, error) {
	for done := 0; done < len(b); { // in pieces: each is progress
		n, err := c.to.Write(b[done:min(len(b), done+1<<20)])
		done, c.n = done+n, c.n+int64(n)
		if err != nil {
			c.err = err
			return done, err
		}
		c.w.moved()
	}
	return len(b), nil
}

// object is an Object.
type object struct {
	s    *bucket
	ctx  context.Context
	name string
	size int64
}

func (o *object) Size() int64  { return o.size }
func (o *object) Close() error { return nil }

// Open is Store's.
func (s *bucket) Open(ctx context.Context, name string) (store.Object, error) {
	if err := checked("open", name); err != nil {
		return nil, err
	}
	o := &object{s: s, ctx: ctx, name: name}
	err := s.try(ctx, "open", name, func(w *watch) error {
		a, err := s.b.Attributes(w, name)
		if err == nil {
			o.size = a.Size
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return o, nil
}

// ReadAt is io.ReaderAt's.
func (o *object) ReadAt(b []byte, at int64) (int, error) {
	if at < 0 {
		return 0, &fs.PathError{Op: "read", Path: o.name, Err: fs.ErrInvalid}
	}
	n := int(min(int64(len(b)), max(o.size-at, 0)))
	if n > 0 {
		err := o.s.try(o.ctx, "read", o.name, func(w *watch) error {
			r, err := o.s.b.NewRangeReader(w, o.name, at, int64(n), nil)
			if err != nil {
				return err
			}
			for got := 0; err == nil && got < n; {
				var k int
				if k, err = r.Read(b[got:n]); k > 0 {
					w.moved()
				}
				if got += k; got == n {
					err = nil
				} else if errors.Is(err, io.EOF) {
					err = io.ErrUnexpectedEOF
				}
			}
			return errors.Join(err, r.Close())
		})
		if err != nil {
			return 0, err
		}
	}
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

// List is Store's.
func (s *bucket) List(ctx context.Context, prefix string) (list []store.Entry, err error) {
	err = s.try(ctx, "list", prefix, func(w *watch) error {
		list = nil
		for it := s.b.List(&blob.ListOptions{Prefix: prefix}); ; {
			o, err := next(w, it)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			w.moved()
			if !strings.HasPrefix(o.Key, prefix) || len(list) > 0 && o.Key == list[0].Name {
				return &fault{fmt.Errorf("the object store lists %q again, or where it is not", o.Key)}
			}
			list = append(list, store.Entry{Name: o.Key, Size: o.Size})
		}
	})
	slices.SortFunc(list, func(a, b store.Entry) int { return strings.Compare(a.Name, b.Name) })
	return list, err
}

// Delete is Store's.
func (s *bucket) Delete(ctx context.Context, name string) error {
	if err := checked("delete", name); err != nil {
		return err
	}
	err := s.try(ctx, "delete", name, func(w *watch) error { return s.b.Delete(w, name) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Sweep is store.Sweeper's.
func (s *bucket) Sweep(ctx context.Context, prefix string, gone func(name string) bool) error {
	if s.o.Sweep == nil {
		return nil
	}
	return s.try(ctx, "sweep", prefix, func(w *watch) error {
		return s.o.Sweep(w, prefix, func(name string) bool { w.moved(); return gone(name) })
	})
}
