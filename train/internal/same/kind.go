package same

import (
	"context"
	"errors"
	"fmt"
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

// sentinels are the errors that a program asks for with errors.Is. Their places are what one rank
// tells another, so all ranks must run one version of this package, which ccl.Join sees to.
var sentinels = append([]error{fs.ErrNotExist, fs.ErrExist, fs.ErrPermission, fs.ErrInvalid, fs.ErrClosed,
	os.ErrDeadlineExceeded,
	context.Canceled, context.DeadlineExceeded, io.EOF, io.ErrUnexpectedEOF, errors.ErrUnsupported}, codes()...)

// codes are those of ccl.
func codes() (list []error) {
	for k := ccl.ErrArgument; k <= ccl.ErrUnused; k++ {
		list = append(list, k)
	}
	return list
}

// told is the error of one rank, as every rank returns it: one text, and one answer to errors.Is
// and errors.As about what is in sentinels, a ccl.Code or a syscall.Errno. Only the rank that had
// the error also finds other things in it.
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

// statementOf is what a rank says of its error: its kinds, and its text.
func statementOf(err error) string {
	var kinds []string
	for i, s := range sentinels {
		if errors.Is(err, s) {
			kinds = append(kinds, strconv.Itoa(i))
		}
	}
	for _, n := range errnos(err, nil) { // whose numbers another system gives to others
		kinds = append(kinds, fmt.Sprintf("%s:%d", runtime.GOOS, n))
	}
	return strings.Join(kinds, ",") + separator + clean(err.Error())
}

// kindsOf reads what statementOf has written.
func kindsOf(statement string) (kinds []error, text string) {
	list, text, _ := strings.Cut(statement, separator)
	for _, k := range strings.Split(list, ",") {
		system, number, isErrno := strings.Cut(k, ":")
		if !isErrno {
			number = k
		}
		n, err := strconv.Atoi(number)
		switch {
		case err != nil || n < 0:
		case isErrno && system == runtime.GOOS:
			kinds = append(kinds, syscall.Errno(n))
		case !isErrno && n < len(sentinels):
			kinds = append(kinds, sentinels[n])
		}
	}
	return kinds, text
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
