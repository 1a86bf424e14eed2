package ckpt

import (
	"io"
	"os"
	"path/filepath"

	"github.com/goccl/goccl/internal/files"
	"github.com/goccl/goccl/train/internal/same"
)

// opened is an open file of a checkpoint.
type opened interface {
	io.ReaderAt
	io.Closer
}

// source is where the files of one checkpoint are read: a directory, or a place in a Store.
type source interface {
	// open opens a file of at most so many bytes, and returns its size.
	open(file string, most int64) (opened, int64, error)
	// lacks reports whether there is no file of that name, not even one that cannot be opened.
	lacks(file string) bool
	// path is the file's name in messages; of "" that of the checkpoint.
	path(file string) string
}

// folder is a directory as a source.
type folder string

func (d folder) open(file string, most int64) (opened, int64, error) {
	var f *os.File
	var size int64
	err := same.Do(d.path(file), func() (err error) { f, size, err = files.OpenIn(string(d), file, most); return err })
	if err != nil {
		return nil, 0, err
	}
	return onDisk{f}, size, nil
}

// onDisk is a file whose disk has five minutes for each read.
type onDisk struct{ *os.File }

func (o onDisk) ReadAt(b []byte, at int64) (int, error) { return same.ReadAt(o.File, b, at) }

func (d folder) lacks(file string) bool {
	_, err := os.Lstat(d.path(file))
	return os.IsNotExist(err)
}

func (d folder) path(file string) string { return filepath.Join(string(d), file) }

// target is where Save writes a checkpoint: a disk, or a Shelf.
type target interface {
	// take begins what is to be dir, on rank 0. tmp names this attempt, and sequence is its place in
	// the order of the checkpoints beside it.
	take(dir string) (tmp string, sequence int64, err error)
	// create writes a file of so many bytes, by f, for the attempt tmp. The name of the result is what
	// the index is to call the file.
	create(dir, tmp, name string, size int64, f func(io.Writer) error) (file, error)
	// publish writes the index, and gives the attempt the name dir, on rank 0.
	publish(dir, tmp string, ix *index) error
	// discard removes the attempt, which has failed.
	discard(dir, tmp string)
	// lost is err, or more if the attempt was removed by another job.
	lost(tmp string, err error) error
}

// catalog is what there is beside each other in a directory, or in a place of a Store.
type catalog interface {
	// list lists the checkpoints that Step has named, in any order. The sequence of one is 0 if its index does not say.
	list(dir string) ([]step, error)
	// at is the checkpoint of that name in dir.
	at(dir, name string) source
	// Failed is why what was asked for could not be read, if that says nothing about what is there.
	Failed() error
	// clear removes checkpoints by their names, and what is unfinished and goes.
	clear(dir string, names []string, goes func(entryName) bool) error
}

// sequenceOf is the place of a checkpoint in time, read without the rest of its index. 0 if it is not known.
func sequenceOf(src source) int64 {
	f, _, err := src.open(indexName, maxIndex)
	if err != nil {
		return 0
	}
	defer f.Close()
	return sequenceIn(f)
}
