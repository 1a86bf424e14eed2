package same

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"github.com/goccl/goccl/ccl"
)

// sentinels are the errors that a program asks for with errors.Is. Their places are what one rank tells another, so all ranks
// must run one version of this package, which ccl.Join sees to.
var sentinels = append([]error{fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, fs.ErrInvalid, fs.ErrClosed, os.ErrDeadlineExceeded,
	context.Canceled, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, errors.ErrUnsupported}, codes()...)

// codes are those of ccl.
func codes() (list []error) {
	for k := ccl.ErrArgument; k <= ccl.ErrUnused; k++ {
		list = append(list, k)
	}
	return list
}

// told is the error of one rank, as every rank returns it: one text, and one answer to errors.Is and errors.As about what is
// in sentinels, a ccl.Code or a syscall.Errno. Only the rank that had the error also finds other things in it.
type told struct {
	text  string
	kinds []error
	own   error // on that rank; nil on the others
}

func (e *told) Error() string   { return e.text }
func (e *told) Unwrap() []error { return e.kinds }

func (e *told) Is(target error) bool {
	switch target.(type) {
	case syscall.Errno, ccl.Code:
		return false
	}
	return e.own != nil && !slices.Contains(sentinels, target) && errors.Is(e.own, target)
}

func (e *told) As(target any) bool {
	switch target.(type) {
	case *syscall.Errno, *ccl.Code:
		return false
	}
	return e.own != nil && errors.As(e.own, target)
}

// statement is what a rank tells the others: its items, or its error.
type statement struct {
	Items  []string
	Bad    bool
	Text   string // of the error
	Kinds  []int  // which of sentinels it is
	System string // whose Errnos they are: another system gives the numbers to other errors
	Errnos []syscall.Errno
}

// stated is the statement of a rank with these items, of which bad is what is wrong, or nil.
func stated(bad error, items []string) statement {
	if bad == nil {
		return statement{Items: items}
	}
	s := statement{Bad: true, Text: clean(bad.Error()), System: runtime.GOOS, Errnos: errnos(bad, nil)}
	for i, kind := range sentinels {
		if errors.Is(bad, kind) {
			s.Kinds = append(s.Kinds, i)
		}
	}
	return s
}

// kinds are what errors.Is finds in the error on every rank.
func (s statement) kinds() (list []error) {
	for i, kind := range sentinels {
		if slices.Contains(s.Kinds, i) {
			list = append(list, kind)
		}
	}
	if s.System == runtime.GOOS {
		for _, n := range s.Errnos {
			list = append(list, n)
		}
	}
	return list
}

// errnos adds the system's errors in err to list.
func errnos(err error, list []syscall.Errno) []syscall.Errno {
	switch x := err.(type) {
	case syscall.Errno:
		if !slices.Contains(list, x) {
			list = append(list, x)
		}
	case interface{ Unwrap() error }:
		return errnos(x.Unwrap(), list)
	case interface{ Unwrap() []error }:
		for _, e := range x.Unwrap() {
			list = errnos(e, list)
		}
	}
	return list
}

// clean is text without what a terminal obeys: names in files may have anything in them.
func clean(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == '\n' || r == '\t' || !unicode.IsControl(r) {
			b.WriteRune(r)
			continue
		}
		b.WriteString(strings.Trim(strconv.QuoteRuneToASCII(r), "'"))
	}
	return b.String()
}
