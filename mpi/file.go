package mpi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"math"
	"math/bits"
	"os"
	"strings"
	"sync"
	"sync/atomic"
)

// Mode says how OpenFile opens a file: one of ReadOnly, WriteOnly and ReadWrite, and any of the others, joined by |.
type Mode int

// The modes. The order of the bits is that of gmpi_file.h.
const (
	ReadOnly  Mode = 1 << iota
	WriteOnly      // it can be read by no rank
	ReadWrite
	Create        // it is made if there is none
	Excl          // with Create: it is an error if there is one
	DeleteOnClose // Close deletes it
	UniqueOpen    // nobody else opens it meanwhile
	modeEnd
)

// check is nil, or what is wrong with m.
func (m Mode) check() *Error {
	switch {
	case m < 0 || m >= modeEnd:
		return failed("", ErrAmode, "a mode of %d, which has bits without a meaning", int(m))
	case bits.OnesCount(uint(m&(ReadOnly|WriteOnly|ReadWrite))) != 1:
		return failed("", ErrAmode, "a mode needs one of ReadOnly, WriteOnly and ReadWrite")
	case m&ReadOnly != 0 && m&(Create|Excl) != 0:
		return failed("", ErrAmode, "a mode of ReadOnly with Create or Excl, which make a file")
	}
	return nil
}

// Hint is advice to the library and the file system, as an MPI_Info carries it. A library passes
// over what it does not know.
type Hint struct{ Name, Value string }

// StripingFactor asks for a new file on n devices of the file system (Lustre: OSTs).
func StripingFactor(n int) Hint { return Hint{"striping_factor", fmt.Sprint(n)} }

// StripingUnit asks for a new file in stripes of so many bytes.
func StripingUnit(bytes int) Hint { return Hint{"striping_unit", fmt.Sprint(bytes)} }

// CollectiveNodes asks for n ranks that read and write for all in ReadAtAll and WriteAtAll (cb_nodes).
func CollectiveNodes(n int) Hint { return Hint{"cb_nodes", fmt.Sprint(n)} }

// pack is hints as C reads them, or why they cannot be.
func pack(name string, hints []Hint) (string, *Error) {
	var b strings.Builder
	for _, h := range hints {
		if h.Name == "" || strings.Contains(h.Name+h.Value, "\x00") {
			return "", failed("", ErrInfoKey, "a hint needs a name, and neither name nor value has a zero byte: %q, %q",
				h.Name, h.Value)
		}
		b.WriteString(h.Name + "\x00" + h.Value + "\x00")
	}
	if name == "" || strings.Contains(name, "\x00") {
		return "", failed("", ErrBadFile, "a name needs at least one byte, and no zero byte")
	}
	return b.String(), nil
}

// openable is why a file is not opened by that name: MPI waits for ever at a pipe, and says of a
// folder that it has MaxInt64 bytes.
func openable(name string) *Error {
	_, path, _ := strings.Cut(name, ":") // ROMIO takes the kind of the file system before the path
	for _, at := range []string{name, path} {
		if info, err := os.Stat(at); err == nil && info.Mode()&(fs.ModeDir|fs.ModeNamedPipe|fs.ModeSocket) != 0 {
			return failed("", ErrBadFile, "it is no file (%s)", info.Mode().Type())
		}
	}
	return nil
}

// File is a file that all ranks of a communicator have open: MPI-IO. Offsets are in bytes from its
// beginning, and elements are as they are in memory.
//
// OpenFile, Close, SetSize, Sync, ReadAtAll and WriteAtAll are collective, and one goroutine of a
// rank at a time may call them. The context of such a call ends the wait for the other ranks; once
// all have come it goes to its end, and then all ranks return an error if one of them has one.
// Ranks that make different calls all get ErrNotSame, which names two of them, and none of the
// calls is made. A rank that does not come, or does not wait, costs the others the File
// (ErrAbandoned). ReadAt, WriteAt and Size are one rank's own, at any time and from any goroutine;
// a transfer that has begun goes to its end.
//
// There are no views, MPI_File_set_view: a rank moves one range of bytes in a call. Parts that lie
// interleaved, such as the columns of a matrix, take a call for each piece, or an AllToAll first,
// after which each rank has a range.
type File struct {
	name    string
	mode    Mode
	comm    *Comm    // the file's own: its calls meet no others
	members []member // where calls take turns: see collectively
	mu      sync.RWMutex
	handle  fileHandle
	closed  bool
	size    atomic.Int64                   // bytes that the file is known to have
	ask     func(op string) (int64, error) // sizeOf; a test has it fail
}

// openFiles counts the Files of this process that are not closed.
var openFiles atomic.Int64

// OpenFile opens the file of that name on all ranks of c, which give the same name, mode and hints.
// It is collective over c: a file of each rank's own is opened over Self.
func OpenFile(ctx context.Context, c *Comm, name string, mode Mode, hints ...Hint) (*File, error) {
	f := &File{name: name, mode: mode}
	f.ask = f.sizeOf
	if err := c.ready("OpenFile"); err != nil {
		return nil, err
	}
	dup := Call{Kind: kindDup}
	if ctx.Err() != nil {
		return nil, notBegun(&dup, ctx.Err())
	}
	by := func(st Status) (err error) {
		f.comm = &Comm{handle: uintptr(st.Count), rank: c.rank, size: c.size}
		if process.level != Multiple {
			f.members, err = f.comm.members(0, 0)
		}
		return err
	}
	st, left, err := c.pollOrLeave(ctx, &dup)
	if left != nil { // see together: the others meet when they have it
		left.goOn(func() {
			if _, st, err := left.Test(); err == nil && by(st) == nil {
				f.tellGone("OpenFile")
			}
		})
	}
	if err == nil {
		err = by(st)
	}
	if err != nil {
		return nil, err
	}
	packed, refusal := pack(name, hints)
	refusal = cmp.Or(refusal, mode.check(), noFiles(), openable(name))
	same := fnv.New64a()
	fmt.Fprintf(same, "%d %s\x00%s", mode, name, packed)
	err = f.together(ctx, "OpenFile", refusal, int64(same.Sum64()>>2), "names, modes or hints",
		func(int64, bool) (err error) {
			f.handle, err = f.comm.openFile(name, mode, packed)
			return err
		})
	if err != nil { // where other ranks could open it, theirs is left open: to close it would need this one
		if !errors.Is(err, ErrAbandoned) {
			_ = f.comm.Free()
		}
		return nil, err
	}
	openFiles.Add(1)
	return f, nil
}

// Name is the name that the file was opened by.
func (f *File) Name() string { return f.name }

// error is err, with op and the file's name.
func (f *File) error(op string, err *Error) *Error {
	err.Op, err.File = op, f.name
	return err
}

// ready is nil, or why op cannot be called on f, whose mu is held.
func (f *File) ready(op string) error {
	if f.closed {
		return f.error(op, failed(op, ErrFile, "the file was closed"))
	}
	if e, ok := f.comm.ready(op).(*Error); ok {
		return f.error(op, e)
	}
	return nil
}

// Close closes the file, once this rank's other calls on it are done. It is collective. Where other
// ranks make another call, they get ErrNotSame, and Close waits until they come to theirs.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.closed {
		return f.error("Close", failed("", ErrFile, "the file was closed"))
	}
	made := false
	closing := func() error {
		return f.together(context.Background(), "Close", nil, 0, "", func(int64, bool) error {
			made = true
			return f.closeFile()
		})
	}
	err := closing()
	for !made && errors.Is(err, ErrNotSame) { // which the others have learned, too
		err = closing()
	}
	f.closed = true
	openFiles.Add(-1)
	if f.comm.broken.Load() != nil {
		return err // the ranks that are missing do not come to free it either
	}
	if e := f.comm.Free(); err == nil {
		err = e
	}
	return err
}

// Size is the file's size in bytes.
func (f *File) Size() (int64, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if err := f.ready("Size"); err != nil {
		return 0, err
	}
	enter()
	defer leave()
	return f.sizeOf("Size")
}

// SetSize cuts the file to so many bytes, or lengthens it by zeros. It is collective, with the same size on all ranks.
func (f *File) SetSize(ctx context.Context, bytes int64) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if err := f.ready("SetSize"); err != nil {
		return err
	}
	refusal := f.mayWrite()
	if bytes < 0 || bytes > math.MaxInt64/4 {
		refusal, bytes = failed("", ErrArg, "a size of %d", bytes), 0
	}
	return f.together(ctx, "SetSize", refusal, bytes, "sizes", func(int64, bool) error {
		f.size.Store(0)
		defer f.size.Store(0) // what a ReadAt of another goroutine has asked for meanwhile may be the old size
		return f.setSize(bytes)
	})
}

// Sync has what was written reach the storage, and be seen by the ranks that read it after their
// Sync. It is collective.
func (f *File) Sync(ctx context.Context) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if err := f.ready("Sync"); err != nil {
		return err
	}
	return f.together(ctx, "Sync", nil, 0, "", func(int64, bool) error { return f.sync() })
}

func (f *File) mayRead() *Error {
	if f.mode&WriteOnly != 0 {
		return failed("", ErrAccess, "the file was opened as WriteOnly")
	}
	return nil
}

func (f *File) mayWrite() *Error {
	if f.mode&ReadOnly != 0 {
		return failed("", ErrReadOnly, "the file was opened as ReadOnly")
	}
	return nil
}
