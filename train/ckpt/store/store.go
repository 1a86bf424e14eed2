// Package store says what package ckpt asks of the place where checkpoints lie when the place is no
// directory that all ranks share: objects by name, each there whole or not at all. Dir keeps them in
// a directory. github.com/goccl/goccl/interop/blob keeps them in an object store.
package store

import (
	"context"
	"io"
)

// Store keeps objects by name: some bytes, which never change but by another Put of the whole. A
// name is a path with slashes that fs.ValidPath takes. What one process has put, listed or deleted,
// all processes see at once. Several goroutines call a Store. Each method ends when ctx does, and
// within a bounded time if the storage does not answer: retries are the Store's own.
type Store interface {
	// Put makes the object name with the size bytes that write writes. Under the name there is what was
	// there before or all of the new bytes, whenever the process or the storage fails. write may be
	// called again, and writes the same. With fresh an object of that name is fs.ErrExist, and stays:
	// of several that put one name so at once, one has no error. After any other error the object may
	// be there, or come later.
	Put(ctx context.Context, name string, size int64, fresh bool, write func(io.Writer) error) error
	// Open opens an object to read it, or returns fs.ErrNotExist.
	Open(ctx context.Context, name string) (Object, error)
	// List lists the objects whose names begin with prefix, in the order of their names.
	List(ctx context.Context, prefix string) ([]Entry, error)
	// Delete removes an object, if there is one.
	Delete(ctx context.Context, name string) error
}

// Object is an object that is read. ReadAt reads of it while the ctx of Open lasts.
type Object interface {
	io.ReaderAt
	io.Closer
	// Size is how many bytes the object has.
	Size() int64
}

// Entry is an object in a list.
type Entry struct {
	Name string
	Size int64
}

// Ender is a Store that has to know when a rank no longer reads, such as one whose objects come from
// other ranks.
type Ender interface {
	// Ended is called once a Load has read all that it reads on this rank. What the Load does next waits
	// for the other ranks.
	Ended()
}

// Sweeper is a Store in which a Put that was killed leaves what List does not show, such as the
// parts of a multipart upload.
type Sweeper interface {
	// Sweep removes what Puts of names with that prefix have left, of those for whose name gone returns
	// true: nobody puts these any more.
	Sweep(ctx context.Context, prefix string, gone func(name string) bool) error
}
