package lent

import (
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"

	"github.com/goccl/goccl/internal/environ"
)

// Origin is a place in the program.
type Origin struct {
	file string
	line int
}

func (o *Origin) String() string { return fmt.Sprintf("%s:%d", filepath.Base(o.file), o.line) }

// Here is the line that called a package of devices.
func Here() *Origin {
	var pcs [16]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(2, pcs[:])])
	for {
		f, more := frames.Next()
		if !ours(f.Function) || !more {
			return &Origin{f.File, f.Line}
		}
	}
}

// ours reports whether a function, named as the Go runtime does, is of the packages that hand devices out.
func ours(function string) bool {
	const module = "github.com/goccl/goccl/"
	rest, ok := strings.CutPrefix(function, module)
	if !ok {
		return false
	}
	pkg, _, _ := strings.Cut(rest, ".")
	switch pkg {
	case "internal/lent", "gpu", "cuda", "rocm", "xpu", "xla":
		return true
	}
	return false
}

// leak is what a resource leaves behind that nobody has given back.
type leak struct {
	pkg  string
	dev  int
	what string
	made *Origin
}

func (l leak) String() string {
	return fmt.Sprintf("%s: device %d: %s, made at %s, was never released", l.pkg, l.dev, l.what, l.made)
}

// onLeak is nil where nobody has asked.
var onLeak atomic.Pointer[func(string)]

func init() {
	if environ.Leaks.Get() {
		OnLeak(func(text string) { slog.Warn(text) })
	}
}

// OnLeak has f told, from then on, of everything that the garbage collector finds although it was not closed or freed:
// what it was and where it was made. It is not given back: work that has been issued may still use it. nil
// ends that. GOCCL_LEAKS=1 in the environment logs it.
func OnLeak(f func(text string)) {
	if f == nil {
		onLeak.Store(nil)
		return
	}
	onLeak.Store(&f)
}

func leaked(l leak) {
	if f := onLeak.Load(); f != nil {
		(*f)(l.String())
	}
}
