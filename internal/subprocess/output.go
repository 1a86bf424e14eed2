package subprocess

import (
	"errors"
	"io"
	"os"
	"time"
)

// Output carries what a process writes to a writer. On Unix all that the process has written before
// it ends arrives, however late the writer takes it. What a process of its own writes later, which has
// inherited the output, arrives for a limited time.
type Output struct {
	from, child *os.File
	copied      chan struct{}
}

// NewOutput returns an output, and the file that the process is to have as its standard output or
// error.
func NewOutput(w io.Writer) (*Output, *os.File, error) {
	from, child, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	o := &Output{from, child, make(chan struct{})}
	go o.copy(w)
	return o, child, nil
}

func (o *Output) copy(w io.Writer) {
	defer close(o.copied)
	defer o.from.Close() // after an error of w, so that the process hears of it
	if _, err := io.Copy(w, o.from); errors.Is(err, os.ErrDeadlineExceeded) {
		o.from.SetReadDeadline(time.Time{})
		drain(w, o.from)
	}
}

// Started is called when the process has been started, or could not be: the output ends with those
// processes that have it.
func (o *Output) Started() { o.child.Close() }

// Wait is called when the process has ended. It returns when all that has been written is with the
// writer, and waits no longer than grace for others that still have the output.
func (o *Output) Wait(grace time.Duration) {
	select {
	case <-o.copied:
		return
	case <-time.After(grace):
	}
	if o.from.SetReadDeadline(time.Now()) != nil { // not all systems know one for pipes
		o.from.Close()
	}
	<-o.copied
}
