//go:build mpi && cgo

package mpi

/*
#cgo linux LDFLAGS: -ldl
#include <stdlib.h>
#include "gmpi.h"
#cgo noescape gmpi_run
#cgo nocallback gmpi_run
#cgo noescape gmpi_test
#cgo nocallback gmpi_test
#cgo noescape gmpi_wait
#cgo nocallback gmpi_wait
*/
import "C"

import (
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"unsafe"

	_ "github.com/goccl/goccl/include" // so that `go mod vendor` keeps gmpi.h
	"github.com/goccl/goccl/internal/dl"
	"github.com/goccl/goccl/internal/environ"
)

// opened is the library's handle.
var opened uintptr

// load opens the library for l.
func load(l launch) error {
	s := dl.Search{What: "MPI", Env: environ.MPILib.Name, Names: l.libraries(os.Getenv), Global: true, Advice: l.advice()}
	C.gmpi_save_signals()
	defer C.gmpi_restore_signals()
	if l.family != openMPI {
		openGTL()
	}
	lib, err := s.Open()
	if err != nil {
		return &Error{Op: "Init", Class: ErrLibrary, Text: err.Error()}
	}
	opened = lib.Handle()
	var f, large C.int
	if missing := C.gmpi_load(at(opened), &f, &large); missing != nil {
		return failed("Init", ErrLibrary, "%s is not an MPI library that goccl can use: it has no %s", lib.Path(),
			C.GoString(missing))
	}
	var text [8192]C.char
	var major, minor C.int
	C.gmpi_version(&text[0], C.int(len(text)), &major, &minor)
	process.versionAll = strings.TrimSpace(C.GoString(&text[0]))
	process.version, process.path, process.large = shortVersion(process.versionAll), lib.Path(), large != 0
	if C.gmpi_state() == 2 {
		return failed("Init", ErrState, "MPI was finalised by other code of this process")
	}
	return l.fits(family(f), process.version, process.path)
}

// advice is what to do where l's library is missing.
func (l launch) advice() string {
	switch l.family {
	case openMPI:
		return "install Open MPI's library, or load its module"
	case mpich:
		return "install the library of the MPI whose launcher this is (MPICH, Intel MPI, Cray MPICH), or load its module"
	}
	return "install MPICH, Intel MPI or Open MPI, or load its module"
}

// begin initialises MPI, or attaches to what other code of this process initialised.
func begin(want Level) error {
	var k C.gmpi_call
	var start C.gmpi_start
	C.gmpi_save_signals()
	defer C.gmpi_restore_signals()
	code := C.gmpi_init(&k, C.int(want), &start)
	process.foreign = start.foreign != 0
	if code != 0 {
		return failure("Init", &k)
	}
	process.level, process.maxTag = Level(start.level), int(start.max_tag)
	spare()
	return nil
}

// spare gives Go a second processor (GOMAXPROCS), unless the user has set the number. With a single processor the
// runtime's monitor thread would wake every 20 microseconds to take that processor from a goroutine inside MPI.
// Where the launcher has bound the process to one core, the monitor would do so on the core on which MPI spins.
func spare() {
	if runtime.GOMAXPROCS(0) == 1 && os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(2)
	}
}

func end() error {
	var k C.gmpi_call
	if process.foreign {
		if process.level >= Serialized && C.gmpi_release(&k) != 0 {
			return failure("Finalize", &k)
		}
		return nil
	}
	if C.gmpi_finalize(&k) != 0 {
		return failure("Finalize", &k)
	}
	if !hosted() {
		C.gmpi_exit(at(opened))
	}
	return nil
}

// hosted reports whether this is a part of a program in C, whose end runs what libraries have for it.
func hosted() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.ContainsFunc(info.Settings, func(s debug.BuildSetting) bool {
		return s.Key == "-buildmode" && (s.Value == "c-shared" || s.Value == "c-archive")
	})
}

func abort(comm uintptr, code int) { C.gmpi_abort(C.uintptr_t(comm), C.int(code)) }

// predefined is the handle of MPI_COMM_WORLD, 0, or MPI_COMM_SELF, 1.
func predefined(which int) uintptr { return uintptr(C.gmpi_predefined(C.int(which))) }

// failure is the error that C noted in k.
func failure(op string, k *C.gmpi_call) *Error {
	switch k.code {
	case C.GMPI_NO_MEMORY:
		return failed(op, ErrNoMem, "no memory for the counts of %d ranks", k.size)
	case C.GMPI_TOO_LARGE:
		return failed(op, ErrCount, "more elements than this MPI can take")
	}
	e := &Error{Op: op, Class: Class(k.class), Code: int(k.code), Text: "no text"}
	if k.text != 0 {
		text := at(uintptr(k.text))
		e.Text = strings.TrimSpace(C.GoString((*C.char)(text)))
		C.free(text)
		k.text = 0
	}
	return e
}

func (c *Comm) identify() error {
	k := C.gmpi_call{comm: C.uintptr_t(c.handle)}
	var rank, size C.int
	if C.gmpi_rank(&k, &rank, &size) != 0 {
		return failure("Comm", &k)
	}
	c.rank, c.size = int(rank), int(size)
	return nil
}

// make has MPI make or free a communicator, without the turn: see collectively.
func (c *Comm) make(op string, what, color, key int) (uintptr, error) {
	k := C.gmpi_call{comm: C.uintptr_t(c.handle)}
	var made C.uintptr_t
	if C.gmpi_comm(&k, C.int(what), C.int(color), C.int(key), &made) != 0 {
		return 0, failure(op, &k)
	}
	return uintptr(made), nil
}

// fill is k for C.
func (c *Comm) fill(f *C.gmpi_call, k *Call) {
	f.dst, f.src = C.uintptr_t(k.Dst), C.uintptr_t(k.Src)
	f.n, f.m = C.int64_t(k.N), C.int64_t(k.M)
	f.dc, f.sc = C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(k.DC)))),
		C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(k.SC))))
	f.comm, f.limit, f.size = C.uintptr_t(c.handle), C.int64_t(limit), C.int32_t(c.size)
	f.kind, f._type, f.op = C.int32_t(k.Kind), C.int32_t(k.Type), C.int32_t(k.Op)
	f.root, f.to, f.tag = C.int32_t(k.Root), C.int32_t(k.To), C.int32_t(k.Tag)
	if k.InPlace {
		f.in_place = 1
	}
}

// run makes k with MPI's blocking function. large says that it needs a form the library lacks.
func (c *Comm) run(k *Call) (st Status, large bool, err error) {
	var f C.gmpi_call
	c.fill(&f, k)
	if C.gmpi_run(&f) == 0 {
		return Status{int(f.source), int(f.got_tag), int(f.got)}, false, nil
	}
	if f.code == C.GMPI_TOO_LARGE {
		return Status{}, true, nil
	}
	retain(k)
	return Status{}, false, failure(k.Kind.String(), &f)
}

// startsSendRecv: MPI_Isendrecv came with MPI 4. A Recv and a Send do as well.
const startsSendRecv = false

// part is one request of MPI.
type part struct{ call C.gmpi_call }

// receives reports whether p's status says something.
func (p *part) receives() bool {
	return p.call.kind == C.GMPI_KIND_RECV || p.call.kind == C.GMPI_KIND_DUP
}

// begin starts k.
func (c *Comm) begin(k *Call) (p part, large bool, err error) {
	enter()
	defer leave()
	c.fill(&p.call, k)
	p.call.start = 1
	switch {
	case C.gmpi_run(&p.call) == 0:
		return p, false, nil
	case p.call.code == C.GMPI_TOO_LARGE:
		return p, true, nil
	}
	p.free()
	return p, false, failure(k.Kind.String(), &p.call)
}

func (p *part) free() {
	C.free(at(uintptr(p.call.vectors)))
	p.call.vectors = 0
}

// test looks after p, inside MPI until it is complete if told to wait.
func (c *Comm) test(p *part, wait bool) (done bool, st Status, err error) {
	enter()
	defer leave()
	var code C.int
	if wait {
		code = C.gmpi_wait(&p.call)
	} else {
		code = C.gmpi_test(&p.call)
	}
	if code != 0 {
		p.free()
		return true, Status{}, failure(Kind(p.call.kind).String(), &p.call)
	}
	if p.call.done == 0 {
		return false, Status{}, nil
	}
	p.free()
	if p.call.cancelled != 0 {
		return true, Status{Source: cancelled}, nil
	}
	return true, Status{int(p.call.source), int(p.call.got_tag), int(p.call.got)}, nil
}

// cancel asks MPI to take a receive back. What became of it is seen by test.
func (p *part) cancel() {
	enter()
	defer leave()
	if C.gmpi_cancel(&p.call) != 0 {
		_ = failure("Cancel", &p.call) // frees its text; the receive goes on
	}
}

// probe asks once for the message that k is about.
func (c *Comm) probe(k *Call) (found bool, st Status, err error) {
	enter()
	defer leave()
	var f C.gmpi_call
	c.fill(&f, k)
	f.start = 1
	if C.gmpi_run(&f) != 0 {
		return false, Status{}, failure(k.Kind.String(), &f)
	}
	if f.done == 0 {
		return false, Status{}, nil
	}
	return true, Status{int(f.source), int(f.got_tag), int(f.got)}, nil
}

// makePlaced has MPI make the type of typePlaced.
func makePlaced() error {
	enter()
	defer leave()
	var k C.gmpi_call
	if C.gmpi_placed(&k) != 0 {
		return failure("MaxLoc", &k)
	}
	return nil
}

func processorName() (string, error) {
	var k C.gmpi_call
	var name [257]C.char
	if C.gmpi_processor(&k, &name[0]) != 0 {
		return "", failure("ProcessorName", &k)
	}
	return C.GoString(&name[0]), nil
}

func wtime() float64 { return float64(C.gmpi_wtime()) }
