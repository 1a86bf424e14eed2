// Package dl opens shared libraries at run time, so that one program runs where a library is
// missing and says what it looked for.
package dl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Search is where to look for a library.
type Search struct {
	What  string   // for people: "NCCL"
	Env   string   // the variable that names the file; where it is set, nothing else is tried
	Names []string // file names or paths, tried in this order
	// Global lets libraries that are loaded later see this one's symbols, as the plugins of
	// Open MPI must. The default keeps them apart: NCCL and RCCL export the same names.
	Global bool
	Advice string // what to do where there is none: "install NCCL 2.10 or newer"
}

// Library is an open library. It is never closed: threads and handlers of its own may outlive any use.
type Library struct {
	name, path string
	handle     uintptr
}

// Name is what the library was opened as.
func (l *Library) Name() string { return l.name }

// Path is the file it came from, or Name where the system does not tell.
func (l *Library) Path() string { return l.path }

// Handle is what dlopen returned, for C code that looks up symbols by itself.
func (l *Library) Handle() uintptr { return l.handle }

// Symbol is the address of a symbol of the library or of one it depends on, 0 if there is none.
func (l *Library) Symbol(name string) uintptr { return symbol(l.handle, name) }

// Attempt is one file that could not be opened, and why.
type Attempt struct{ Name, Text string }

// Error says all that was tried.
type Error struct {
	Search   Search
	Set      string // the value of Search.Env
	Attempts []Attempt
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s cannot be loaded: ", e.Search.What)
	if e.Search.Env != "" && e.Set == "" {
		fmt.Fprintf(&b, "%s is not set; ", e.Search.Env)
	}
	for i, a := range e.Attempts {
		if i > 0 {
			b.WriteString("; ")
		}
		if e.Set != "" {
			b.WriteString(e.Search.Env + "=")
		}
		b.WriteString(a.Name)
		// The loader's text mostly starts with the name it is about.
		if text := strings.TrimPrefix(a.Text, a.Name+": "); text != "" {
			b.WriteString(": " + text)
		}
	}
	if e.Search.Advice != "" {
		b.WriteString(". To fix this, " + e.Search.Advice)
		if e.Search.Env != "" {
			fmt.Fprintf(&b, ", or set %s to the library's file", e.Search.Env)
		}
	}
	return b.String()
}

// errNoCgo is why nothing can be loaded in a build without cgo.
var errNoCgo = errors.New("this program was built without cgo, which loading a library needs: build it with CGO_ENABLED=1 and a C compiler")

// Open opens the first library that can be. All symbols are bound at once, so that a library
// whose dependencies do not fit fails here and not in a later call. The error is an *Error.
func (s Search) Open() (*Library, error) {
	names, failed := s.Names, &Error{Search: s}
	if s.Env != "" {
		if failed.Set = os.Getenv(s.Env); failed.Set != "" {
			names = []string{failed.Set}
		}
	}
	for _, name := range names {
		file := name
		if strings.ContainsRune(name, filepath.Separator) {
			// libraries look for their parts beside themselves, wherever that is then
			if abs, err := filepath.Abs(name); err == nil {
				file = abs
			}
		}
		var handle uintptr
		path, err := "", openable(file)
		if err == nil {
			handle, path, err = open(file, s.Global)
		}
		if err == nil {
			return &Library{name: name, path: path, handle: handle}, nil
		}
		failed.Attempts = append(failed.Attempts, Attempt{name, err.Error()})
		if errors.Is(err, errNoCgo) {
			break // it would be the same for all
		}
	}
	return nil, failed
}

// openable is why a library cannot be opened by that name, where the loader would do something else: cut
// it at a zero byte, take "" for this program, or wait for a pipe. What is not there is for the loader to say.
func openable(file string) error {
	if file == "" || strings.ContainsRune(file, 0) {
		return fmt.Errorf("%q is no name of a file", file)
	}
	if info, err := os.Stat(file); err == nil && strings.ContainsRune(file, filepath.Separator) &&
		!info.Mode().IsRegular() {
		return fmt.Errorf("%s: it is no regular file (%s)", file, info.Mode().Type())
	}
	return nil
}
