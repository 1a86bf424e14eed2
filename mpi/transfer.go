package mpi

import (
	"context"
	"math"
	"runtime"
	"unsafe"
)

// most is how many bytes MPI moves between memory and a file at once: what is more goes in pieces.
// Counts end at 2^31-1, and Linux moves no more than 2^31-4096 bytes in a system call, which not
// every library makes up for. Tests set it lower.
var most = 1 << 30

// ReadAt fills dst from the file, beginning with the byte at offset, and says how many elements it
// has read. If the file ends before dst is full the error is ErrEOF, which errors.Is also takes for
// io.EOF. It is this rank's own call.
func ReadAt[T Number](ctx context.Context, f *File, dst []T, offset int64) (int, error) {
	return whole(ctx, f, transfer{op: "ReadAt"}, dst, offset)
}

// WriteAt writes src to the file, beginning with the byte at offset, and says how many elements it
// has written. It is this rank's own call. What ranks write to the same place at a time is one or
// the other, or parts of both.
func WriteAt[T Number](ctx context.Context, f *File, src []T, offset int64) (int, error) {
	return whole(ctx, f, transfer{op: "WriteAt", write: true}, src, offset)
}

// ReadAtAll is ReadAt as a collective call, in which the library reads for all ranks as one: each rank has its own
// offset, and its own length, which may be 0.
func ReadAtAll[T Number](ctx context.Context, f *File, dst []T, offset int64) (int, error) {
	return whole(ctx, f, transfer{op: "ReadAtAll", all: true}, dst, offset)
}

// WriteAtAll is WriteAt as a collective call, in which the library writes for all ranks as one. What no rank
// writes stays as it was, but a gap beyond the end of the file holds anything: some libraries write their
// buffers there, with bytes of the process's memory. [File.SetSize] first gives zeros.
func WriteAtAll[T Number](ctx context.Context, f *File, src []T, offset int64) (int, error) {
	return whole(ctx, f, transfer{op: "WriteAtAll", write: true, all: true}, src, offset)
}

// whole makes the transfer t of elements.
func whole[T Number](ctx context.Context, f *File, t transfer, memory []T, offset int64) (int, error) {
	size := TypeOf[T]().Size()
	t.memory, t.bytes, t.offset = unsafe.Pointer(unsafe.SliceData(memory)), len(memory)*size, offset
	n, err := f.move(ctx, &t)
	if e, ok := err.(*Error); ok && e.Class == ErrEOF {
		e.Text = failed("", ErrEOF, "the file ends after %d of %d elements from byte %d on", n/size, len(memory), offset).Text
	}
	runtime.KeepAlive(memory)
	return n / size, err
}

// transfer is what is to be moved.
type transfer struct {
	op         string
	write, all bool
	memory     unsafe.Pointer
	bytes      int
	offset     int64
}

// piece is the memory of t from byte i on, as long as one call takes; none beyond its end.
func (t *transfer) piece(i int) []byte {
	if i >= t.bytes {
		return nil
	}
	return unsafe.Slice((*byte)(t.memory), t.bytes)[i:min(i+most, t.bytes)]
}

// refusal is nil, or why t cannot be made.
func (f *File) refusal(t *transfer) *Error {
	if t.offset < 0 || t.offset > math.MaxInt64-int64(t.bytes) {
		return failed("", ErrArg, "an offset of %d", t.offset)
	}
	if t.write {
		return f.mayWrite()
	}
	return f.mayRead()
}

// move makes t, and says how many bytes were moved.
func (f *File) move(ctx context.Context, t *transfer) (n int, err error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	if err := f.ready(t.op); err != nil {
		return 0, err
	}
	refusal := f.refusal(t)
	if t.all {
		calls := int64(t.bytes+most-1) / int64(most)
		var end *Error // which is no failure, and one rank's own
		err = f.together(ctx, t.op, refusal, calls, "", func(calls int64, gone bool) error {
			if gone { // the caller's memory is the caller's again
				f.pieces(&transfer{op: t.op, write: t.write, all: true}, int(calls))
				return nil
			}
			got, err := f.pieces(t, int(calls))
			n = got
			switch {
			case err == nil:
			case err.Class == ErrEOF:
				end = err
			default:
				return err
			}
			return nil
		})
		if err == nil && end != nil {
			err = f.error(t.op, end)
		}
		return n, err
	}
	if refusal != nil {
		return 0, f.error(t.op, refusal)
	}
	for n < t.bytes {
		if err := ctx.Err(); err != nil {
			return n, f.error(t.op, &Error{Class: ErrAbandoned, Text: "not begun, or not gone on with", Err: err})
		}
		piece := t.piece(n)
		got, err := f.one(t, piece, t.offset+int64(n))
		if n += got; err != nil {
			return n, f.error(t.op, err)
		}
	}
	return n, nil
}

// one makes one piece of t that is this rank's own.
func (f *File) one(t *transfer, piece []byte, offset int64) (int, *Error) {
	enter()
	defer leave()
	return f.checked(t, piece, offset)
}

// pieces makes calls collective calls, as many as the rank with most bytes needs, also once one has failed.
func (f *File) pieces(t *transfer, calls int) (n int, first *Error) {
	for i := range calls {
		piece := t.piece(i * most)
		got, err := f.checked(t, piece, t.offset+int64(min(i*most, t.bytes)))
		if first == nil {
			n += got
		}
		if err != nil && (first == nil || first.Class == ErrEOF && err.Class != ErrEOF) { // an end of file hides no failure
			first = err
		}
	}
	return n, first
}

// checked moves piece, and looks at what the library says of it. No library is asked for bytes
// beyond the end of the file: in a collective read ROMIO says that it has read them, and Open MPI
// 4.1.4 leaves out bytes that are there.
func (f *File) checked(t *transfer, piece []byte, offset int64) (int, *Error) {
	wanted := len(piece)
	if !t.write {
		there, refused := f.there(t.op, offset, wanted)
		if refused != nil && !t.all {
			return 0, refused
		}
		piece = piece[:there]
		if refused != nil { // the others are in the call, and wait for this rank
			_, _ = f.transfer(t, piece, offset)
			return 0, refused
		}
	}
	if len(piece) > 0 || t.all {
		n, err := f.transfer(t, piece, offset)
		switch {
		case err != nil:
			return n, errorOf(t.op, ErrIO, err)
		case n < len(piece):
			return n, failed(t.op, ErrIO, "only %d of %d bytes at byte %d were moved", n, len(piece), offset)
		}
	}
	if len(piece) < wanted {
		return len(piece), failed(t.op, ErrEOF, "the file has ended")
	}
	return wanted, nil
}

// there is how many of the n bytes from offset on the file has. It asks for the file's size only if
// n is beyond what the file had when it was last asked: other programs do not cut a file that is
// open here.
func (f *File) there(op string, offset int64, n int) (int, *Error) {
	if offset+int64(n) > f.size.Load() {
		size, err := f.ask(op)
		if err != nil {
			return 0, errorOf(op, ErrIO, err)
		}
		f.size.Store(size)
	}
	return int(min(int64(n), max(0, f.size.Load()-offset))), nil
}

// errorOf is err as an *Error, which is of that class unless err says its own.
func errorOf(op string, c Class, err error) *Error {
	e, ok := err.(*Error)
	if !ok && err != nil {
		e = failed(op, c, "%v", err)
	}
	return e
}
