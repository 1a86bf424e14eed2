//go:build oneccl && cgo && linux

package oneccl

/*
#cgo CFLAGS: -I${SRCDIR}/../../../../include
#cgo LDFLAGS: -ldl
#include "call.h"
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"github.com/goccl/goccl/internal/dl"
	"github.com/goccl/goccl/internal/engine"
	"github.com/goccl/goccl/internal/signals"
	"github.com/goccl/goccl/internal/sycl"
)

// library is oneCCL, opened.
type library struct {
	*worker
	version string
	cpu     error // why it runs on its CPU plugin; nil on SYCL devices
	fabric  error // why there is no libfabric
	served  bool  // its ranks find each other at one server, which nobody has chosen

	mu      sync.Mutex
	joining map[string]chan struct{} // ids that a rank of this process is joining with; closed by a second one
	left    []*comm                  // closed, and not destroyed
}

var opened struct {
	sync.Mutex
	lib *library
}

// textRoom is how much of the library's words is kept.
const textRoom = 2048

const (
	idBytes = 4096
	plugin  = "libccl_legacy_cpu.so"
)

// setEnv sets variables of the C library's environment that are not set: oneCCL reads those, and this process's
// children do not get them.
func setEnv(pairs ...string) {
	for i := 0; i < len(pairs); i += 2 {
		if os.Getenv(pairs[i]) != "" {
			continue
		}
		name, value := C.CString(pairs[i]), C.CString(pairs[i+1])
		C.goneccl_env(name, value)
		C.free(unsafe.Pointer(name))
		C.free(unsafe.Pointer(value))
	}
}

// setLocal tells oneCCL where on its host this process is: without a launcher it knows, it asks for that.
func setLocal(local, locals int) {
	setEnv("CCL_LOCAL_RANK", strconv.Itoa(local), "CCL_LOCAL_SIZE", strconv.Itoa(locals))
	// oneCCL's own threads spin. Where they would share cores with the ranks, 8 bytes take 10 ms and not 30 us.
	if runtime.NumCPU() < 2*locals {
		setEnv("CCL_WORKER_OFFLOAD", "0")
	}
}

// open loads oneCCL, once in a process. What has failed is tried again.
func open() (*library, error) {
	opened.Lock()
	defer opened.Unlock()
	if opened.lib != nil {
		return opened.lib, nil
	}
	cpu, err := noDevice()
	if err != nil {
		return nil, err
	}
	defer signals.Guard()()
	// Handlers that print a stack trace where Go would recover, in what libfabric and UCX draw in.
	setEnv("IPATH_NO_BACKTRACE", "1", "UCX_HANDLE_ERRORS", "none")
	served := setTransport()
	setEnv("CCL_LOG_LEVEL", "error") // the default warns of every variable that is set
	names := slices.Clone(engine.OneCCL.Files.Names)
	if root := os.Getenv("CCL_ROOT"); root != "" {
		names = append(names, filepath.Join(root, "lib", names[0]))
	}
	if _, err := (dl.Search{What: "libm", Names: []string{"libm.so.6"}, Global: true}).Open(); err != nil {
		return nil, err // see package sycl: the plugin for devices draws in libimf as well
	}
	so, err := dl.Search{What: engine.OneCCL.Title, Env: engine.OneCCL.Files.Env, Names: names,
		Advice: engine.OneCCL.Files.Advice}.Open()
	if err != nil {
		return nil, err
	}
	l := &library{cpu: cpu, served: served, joining: map[string]chan struct{}{}}
	if missing := C.goneccl_bind(C.U(so.Handle())); missing != nil {
		return nil, fmt.Errorf("%s is not oneCCL 2021.17 or newer: it has no %s. GOCCL_ONECCL_LIB names oneCCL's libccl.so.2", so.Path(), C.GoString(missing))
	}
	if err := l.plug(so); err != nil {
		return nil, err
	}
	if err := l.identify(so); err != nil {
		return nil, err
	}
	l.worker = newWorker()
	opened.lib = l
	return l, nil
}

// identify asks for the version. That loads the plugin.
func (l *library) identify(so *dl.Library) error {
	var v C.int
	if rc := C.goneccl_version(&v); rc != 0 {
		return fmt.Errorf("%s: onecclGetVersion: result %d: it cannot load its plugin, or a library that the plugin needs. Intel's setvars.sh sets the paths; CCL_LOG_LEVEL=info makes oneCCL say more", so.Path(), rc)
	}
	n := int(v)
	l.version = fmt.Sprintf("oneCCL %d.%d.%d", n/10000, n/100%100, n%100)
	if n < C.GONECCL_OLDEST {
		return fmt.Errorf("%s is %s, which is too old: 2021.17 is the first that goccl can use", so.Path(), l.version)
	}
	return nil
}

// plug names the plugin, and libfabric. Left to itself oneCCL takes the one that rates the machine highest, which
// for a SYCL device that is no Intel GPU is none.
func (l *library) plug(so *dl.Library) error {
	if l.cpu == nil {
		setEnv("CCL_PLUGIN", "ONECCL_LEGACY")
	}
	if l.cpu != nil && os.Getenv("CCL_PLUGIN") == "" {
		dir, err := filepath.Abs(filepath.Dir(so.Path())) // what has no slash is looked for elsewhere
		if err != nil {
			return err
		}
		path := filepath.Join(dir, plugin)
		if _, err := os.Stat(path); err != nil {
			return fmt.Errorf("there is no device for oneCCL here (%w), and its plugin for CPUs, %s, is not beside %s; CCL_PLUGIN may name it", l.cpu, plugin, so.Path())
		}
		setEnv("CCL_PLUGIN", path)
	}
	if os.Getenv("CCL_OFI_LIBRARY_PATH") != "" {
		return nil
	}
	// 2021.17 looks for libfabric.so, which is part of a development package.
	fabric, err := dl.Search{What: "libfabric", Names: []string{"libfabric.so", "libfabric.so.1"},
		Advice: "install it (Debian: apt-get install libfabric1), or set CCL_OFI_LIBRARY_PATH to its file"}.Open()
	if err == nil {
		setEnv("CCL_OFI_LIBRARY_PATH", fabric.Name())
	}
	l.fabric = err
	return nil
}

// describe is l as package ccl knows it, nil beside an error.
func describe(l *library, err error) (*engine.Library, error) {
	if err != nil {
		return nil, err
	}
	return &engine.Library{Version: l.version, Windows: engine.ErrUnsupported, ID: l.ID, IDBytes: idBytes, New: l.New}, nil
}

// failure is what the library says of a result; nil for success.
func (l *library) failure(call string, rc int, text []byte) error {
	if rc == 0 {
		return nil
	}
	err := &engine.LibraryError{Library: l.version, Call: call, Result: rc, Text: clean(text)}
	if l.fabric != nil && strings.Contains(err.Text, "transport") {
		return fmt.Errorf("%w; %w", err, l.fabric)
	}
	return err
}

// clean is a text of the library's without its stack trace, on one line.
func clean(text []byte) string {
	s, _, _ := strings.Cut(string(text), "\x00")
	s, _, _ = strings.Cut(s, "[oneCCL ERROR Stacktrace]")
	return strings.Join(strings.Fields(s), " ")
}

// ID makes the id of a new communicator. Nothing stops it, and nothing need: onecclGetUniqueId
// opens a socket of this process and waits for no rank, and behind a call that was given up ID does
// not wait but fails (worker.run).
func (l *library) ID() ([]byte, error) {
	id, text, rc := make([]byte, idBytes), make([]byte, textRoom), C.int(0)
	err := l.run(newJob(func() {
		defer signals.Guard()() // the plugin is loaded here, and libfabric
		rc = C.goneccl_id(unsafe.Pointer(&id[0]), (*C.char)(unsafe.Pointer(&text[0])), textRoom)
	}), nil)
	if err == nil {
		err = l.failure("onecclGetUniqueId", int(rc), text)
	}
	return id, err
}

// patience is how often a start that takes long asks whether it is still wanted.
const patience = 20 * time.Millisecond

var errTwoRanks = errors.New("two ranks of the job are in this process, but oneCCL takes one per process: start each rank as a process of its own")

// New joins a communicator. oneCCL has no way to end that: if ctx ends first, the thread stays in the library.
func (l *library) New(ctx context.Context, g engine.Group, id []byte) (engine.Engine, error) {
	switch {
	case len(id) != idBytes:
		return nil, fmt.Errorf("oneCCL's ids have %d bytes, not %d", idBytes, len(id))
	case g.Size < 1 || g.Rank < 0 || g.Rank >= g.Size: // oneCCL would hang
		return nil, fmt.Errorf("rank %d of %d: a rank is at least 0 and less than the number of ranks", g.Rank, g.Size)
	case l.cpu != nil && g.Device >= 0:
		return nil, fmt.Errorf("device %d: oneCCL runs on its CPU plugin here: %w", g.Device, l.cpu)
	case l.cpu == nil && g.Device < 0:
		return nil, fmt.Errorf("oneCCL runs on devices here; there is no device %d", g.Device)
	case l.served && g.Size > servedMost:
		return nil, tooMany(g.Size)
	}
	twice, leave, err := l.join(string(id))
	if err != nil {
		return nil, err
	}
	defer leave()
	setLocal(g.Local, g.Locals)

	stop := make(chan struct{})
	var why error
	j, result := l.initJob(g, id)
	over := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		tick := time.NewTicker(patience)
		defer tick.Stop()
		for why == nil {
			select {
			case <-over:
				return
			case <-twice:
				why = errTwoRanks
			case <-ctx.Done():
				why = ctx.Err()
			case <-tick.C:
				if g.Check != nil {
					why = g.Check()
				}
			}
		}
		close(stop)
	})
	var e *comm
	if err = l.run(j, stop); err == nil {
		if e, err = result(); err == nil {
			err = l.sweep(stop, e)
		}
	}
	close(over)
	watch.Wait()
	if err == nil {
		return e, nil
	}
	if e != nil { // nobody else closes it
		e.Abort()
		err = errors.Join(err, e.Close())
	}
	if why != nil {
		return nil, fmt.Errorf("%w (onecclCommInitRank: %w)", why, err)
	}
	return nil, err
}

// join notes that a rank of this process joins with id. A second one ends the first one's wait, too.
func (l *library) join(id string) (twice <-chan struct{}, leave func(), err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if first, ok := l.joining[id]; ok {
		if first != nil {
			close(first)
			l.joining[id] = nil
		}
		return nil, nil, errTwoRanks
	}
	c := make(chan struct{})
	l.joining[id] = c
	return c, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		delete(l.joining, id)
	}, nil
}

// levelZero is what oneCCL calls a device: its number among those of Level Zero, all that can be selected, or -1.
func levelZero(device int) int {
	devices, err := sycl.Devices()
	if err != nil || device < 0 || device >= len(devices) || devices[device].Backend != "level_zero" {
		return -1
	}
	n := 0
	for _, d := range devices[:device] {
		if d.Backend == "level_zero" {
			n++
		}
	}
	return n
}

// initJob is the job that makes this rank's end, and what has become of it.
func (l *library) initJob(g engine.Group, id []byte) (*job, func() (*comm, error)) {
	id = append([]byte(nil), id...)
	text := make([]byte, textRoom)
	var handle C.U
	var rc, where C.int
	j := newJob(func() {
		defer signals.Guard()()
		rc = C.goneccl_init(C.int(levelZero(g.Device)), C.size_t(g.Size), unsafe.Pointer(&id[0]), C.int(g.Rank),
			&handle, &where, (*C.char)(unsafe.Pointer(&text[0])), textRoom)
	})
	return j, func() (*comm, error) {
		call := [...]string{"onecclSetDevice", "onecclCommInitRank"}[where]
		if err := l.failure(call, int(rc), text); err != nil {
			return nil, err
		}
		e := &comm{lib: l, name: nameOf(id), handle: uintptr(handle), device: g.Device, strict: g.Strict,
			gone: make(chan struct{})}
		e.plan = plan{rank: g.Rank, size: g.Size, hasScatter: C.goneccl_has_scatter() != 0,
			hasAllToAllV: C.goneccl_has_all_to_all_v() != 0}
		e.out.text = make([]byte, textRoom)
		e.job = newJob(e.carryOut)
		e.job.hold = e.addresses
		if g.Device >= 0 {
			e.xpu = sycl.Table()
		}
		return e, nil
	}
}
