package text

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"sort"

	"github.com/goccl/goccl/internal/files"
)

// Split says what a document of a file is.
type Split int

const (
	Lines      Split = iota // a line: of JSON lines, each an object
	Paragraphs              // what stands between empty lines
	Whole                   // the whole file
)

// Files are documents in files, which are read as they are asked for: what is kept is where each
// begins, 8 bytes a document, and the mostOpen files that were read last are open. A file that is
// changed meanwhile is an error. Its methods may be called by several goroutines at once.
type Files struct {
	names  []string
	starts [][]int64 // of the documents of each file, and its size
	first  []int     // document of each file, and how many there are
	shards shards
}

// mostDocument is how many bytes one document may have.
const mostDocument = 1 << 30

// Open opens files and looks where their documents begin, so it reads all of them once. A line that
// is empty is a document without text, so that documents are numbered as lines are.
func Open(split Split, names ...string) (*Files, error) {
	f := &Files{names: names, first: []int{0}}
	for _, name := range names {
		if err := f.add(split, name); err != nil {
			f.Close()
			return nil, fmt.Errorf("data/text: %w", err)
		}
	}
	return f, nil
}

func (f *Files) add(split Split, name string) error {
	s, err := f.shards.add(name)
	if err != nil {
		return err
	}
	defer f.shards.done(s)
	file, size, starts := s.file, s.info.Size(), []int64{0}
	switch split {
	case Lines, Paragraphs:
		starts, err = begins(io.NewSectionReader(file, 0, size), split == Paragraphs)
	case Whole:
	default:
		err = fmt.Errorf("Open: there is no Split %d", split)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if n := len(starts); n > 0 && starts[n-1] == size { // nothing comes after the last line
		starts = starts[:n-1]
	}
	f.starts = append(f.starts, append(starts, size))
	f.first = append(f.first, f.Len()+len(starts))
	return nil
}

// begins is where each line of r begins; with paragraphs only those that follow an empty one, or
// the beginning.
func begins(r io.Reader, paragraphs bool) (starts []int64, err error) {
	b := make([]byte, 1<<20)
	at := int64(0) // of b in r
	blank, begun := true, false
	for line := int64(0); ; { // where this line begins
		n, err := r.Read(b)
		for i := 0; i < n; {
			end := bytes.IndexByte(b[i:n], '\n')
			part := b[i:n]
			if end >= 0 {
				part = b[i : i+end]
			}
			if full := len(bytes.TrimSpace(part)) > 0; paragraphs && full && !begun && blank {
				starts, begun = append(starts, line), true
			} else if full {
				begun = true
			}
			if end < 0 {
				break
			}
			i += end + 1
			blank, begun = !begun, false
			if !paragraphs {
				starts = append(starts, line)
			}
			line = at + int64(i)
		}
		at += int64(n)
		switch {
		case errors.Is(err, io.EOF):
			if !paragraphs {
				starts = append(starts, line)
			}
			return starts, nil
		case err != nil:
			return nil, err
		}
	}
}

// Len returns the number of documents.
func (f *Files) Len() int { return f.first[len(f.first)-1] }

// Doc returns a document, without white space at its end.
func (f *Files) Doc(i int) ([]byte, error) {
	if i < 0 || i >= f.Len() {
		return nil, fmt.Errorf("data/text: document %d of %d", i, f.Len())
	}
	k := sort.SearchInts(f.first, i+1) - 1
	lo, hi := f.starts[k][i-f.first[k]], f.starts[k][i-f.first[k]+1]
	if hi-lo > mostDocument {
		return nil, f.wrong(i, fmt.Errorf("it has %d bytes, and %d are the most", hi-lo, mostDocument))
	}
	b := make([]byte, hi-lo)
	s, err := f.shards.take(k)
	if err == nil {
		_, err = s.file.ReadAt(b, lo)
		err = cmp.Or(files.Unchanged(s.file, s.info), err) // behind the reading: what was read is as it was
		f.shards.done(s)
	}
	if err != nil {
		return nil, f.wrong(i, err)
	}
	return bytes.TrimRight(b, " \t\r\n"), nil
}

// wrong says in which document of which file an error is.
func (f *Files) wrong(i int, err error) error {
	k := sort.SearchInts(f.first, i+1) - 1
	return fmt.Errorf("data/text: %s, document %d (from 1): %w", f.names[k], i-f.first[k]+1, err)
}

// Close closes the files.
func (f *Files) Close() error { return f.shards.close() }
