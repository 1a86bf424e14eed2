// Package events writes TensorBoard's event files, scalars over steps, as PyTorch's SummaryWriter.
// history.Options.Events has a History write one; a program that has no History uses it alone. It
// writes the format by itself: records of TensorFlow (TFRecord, each with masked CRC-32C sums) that
// hold Event messages in protobuf's encoding.
package events

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/goccl/goccl/internal/files"
)

// Scalar is a value under a tag. TensorBoard groups tags by what is before the first "/".
type Scalar struct {
	Tag   string
	Value float64
}

// Writer writes events. It is used by one goroutine at a time; after a step or two it allocates nothing.
type Writer struct {
	w       io.Writer
	begun   bool
	failed  error
	record  []byte
	summary []byte
}

// New returns a Writer to w, which gets each event in one Write. An error of w is what all later
// calls return: a record that is torn would hide what follows it.
func New(w io.Writer) *Writer { return &Writer{w: w} }

// Create makes a file in the directory dir, and dir if there is none, with a name by which TensorBoard finds it: run
// "tensorboard --logdir dir". A run that goes on makes another file in the same directory.
func Create(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return nil, fmt.Errorf("events: %w", err)
	}
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "localhost"
	}
	name := fileName(time.Now(), host, os.Getpid())
	f, err := files.New(filepath.Join(dir, name), os.O_WRONLY, 0o666)
	if err != nil {
		return nil, fmt.Errorf("events: %w", err)
	}
	return f, nil
}

// fileName is the name of a file that is made at now. TensorBoard reads the files of a directory in
// the order of their names: so the time comes first, to the nanosecond and with leading zeros.
func fileName(now time.Time, host string, pid int) string {
	host = strings.Map(func(r rune) rune {
		if r == '/' || r == filepath.Separator {
			return '-'
		}
		return r
	}, host)
	return fmt.Sprintf("events.out.tfevents.%010d.%09d.%s.%d", now.Unix(), now.Nanosecond(), host, pid)
}

// The fields of Event, Summary, Summary.Value and SessionLog (tensorboard/compat/proto), with
// protobuf's type of each: 0 a number, 1 and 5 eight and four bytes, 2 bytes behind their length.
const (
	wallTime    = 1<<3 | 1
	stepField   = 2 << 3
	fileVersion = 3<<3 | 2
	summary     = 5<<3 | 2
	sessionLog  = 7<<3 | 2
	value       = 1<<3 | 2
	tag         = 1<<3 | 2
	simpleValue = 2<<3 | 5
	status      = 1 << 3
	start       = 1
)

// version is what a file begins with. Without it TensorBoard guesses by steps what a restarted run has replaced.
const version = "brain.Event:2"

// Scalars writes the values of a step. TensorBoard has them as float32.
func (w *Writer) Scalars(at time.Time, step int, s ...Scalar) error {
	w.summary = w.summary[:0]
	for _, x := range s {
		w.record = appendBytes(w.record[:0], tag, x.Tag) // which is free until write
		w.record = binary.LittleEndian.AppendUint32(append(w.record, simpleValue), math.Float32bits(float32(x.Value)))
		w.summary = appendBytes(w.summary, value, w.record)
	}
	return w.event(at, step, summary, w.summary)
}

// Restart says that the run goes on from before step: TensorBoard drops what was written for step and later ones.
func (w *Writer) Restart(at time.Time, step int) error {
	return w.event(at, step, sessionLog, []byte{status, start})
}

// event writes an Event that has one more field, and before the first one the version.
func (w *Writer) event(at time.Time, step int, field byte, content []byte) error {
	if !w.begun {
		w.begun = true
		w.write(at, 0, fileVersion, []byte(version))
	}
	w.write(at, step, field, content)
	return w.failed
}

func (w *Writer) write(at time.Time, step int, field byte, content []byte) {
	if w.failed != nil {
		return
	}
	b := append(w.record[:0], make([]byte, 12)...) // the length and its sum
	b = binary.LittleEndian.AppendUint64(append(b, wallTime), math.Float64bits(float64(at.UnixNano())/1e9))
	if step != 0 { // which protobuf leaves out
		b = binary.AppendUvarint(append(b, stepField), uint64(step))
	}
	b = appendBytes(b, field, content)
	binary.LittleEndian.PutUint64(b, uint64(len(b)-12))
	binary.LittleEndian.PutUint32(b[8:], masked(b[:8]))
	b = binary.LittleEndian.AppendUint32(b, masked(b[12:]))
	w.record = b
	if _, err := w.w.Write(b); err != nil {
		w.failed = fmt.Errorf("events: %w", err)
	}
}

// appendBytes adds a field of bytes behind their length.
func appendBytes[B string | []byte](b []byte, field byte, content B) []byte {
	return append(binary.AppendUvarint(append(b, field), uint64(len(content))), content...)
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// masked is the sum of b as TensorFlow stores it: sums of what holds sums would be weak.
func masked(b []byte) uint32 {
	sum := crc32.Checksum(b, castagnoli)
	return (sum>>15 | sum<<17) + 0xa282ead8
}
