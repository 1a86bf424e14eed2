//go:build xla && cgo && linux

package xla

/*
#include <stdlib.h>
#include "pjrt.h"
*/
import "C"

import (
	"runtime"
	"strings"
	"sync/atomic"
	"unsafe"

	_ "github.com/goccl/goccl/include" // so that `go mod vendor` keeps gpjrt.h
)

// All handles are addresses in C memory. What returns a string returns failure's text, "" if all is well.

func built() error { return nil }

// What gives a program or a buffer back.
const (
	placeProgram = C.GPJRT_LoadedExecutable_Destroy
	placeBuffer  = C.GPJRT_Buffer_Destroy
)

// pointer is an address in C memory as a pointer.
func pointer(h uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&h)) }

func table(api uintptr) *C.gp_api { return (*C.gp_api)(pointer(api)) }

// said takes a text of C's.
func said(s *C.char) string {
	if s == nil {
		return ""
	}
	defer C.free(unsafe.Pointer(s))
	return strings.ToValidUTF8(C.GoString(s), "?")
}

func chars(s string) *C.char  { return (*C.char)(unsafe.Pointer(unsafe.StringData(s))) }
func octets(b []byte) *C.char { return (*C.char)(unsafe.Pointer(unsafe.SliceData(b))) }

func ints(d []int64) *C.int64_t { return (*C.int64_t)(unsafe.Pointer(unsafe.SliceData(d))) }

func start(get uintptr, api *uintptr) string {
	var a *C.gp_api
	s := said(C.gp_start(C.uintptr_t(get), &a))
	*api = uintptr(unsafe.Pointer(a))
	return s
}

func version(api uintptr) (major, minor int) {
	v := &table(api).version
	return int(v.major), int(v.minor)
}

func hasStreams(api uintptr) bool { return C.gp_has_streams(table(api)) != 0 }

// open makes the client.
func (c *Client) open(names []string, o Options) string {
	api := table(c.p.api)
	list := (*[1 << 16]C.gp_option)(C.calloc(C.size_t(len(names)+1), C.sizeof_gp_option))
	defer C.free(unsafe.Pointer(list))
	var texts []*C.char
	defer func() {
		for _, s := range texts {
			C.free(unsafe.Pointer(s))
		}
	}()
	text := func(s string) (*C.char, C.size_t) {
		texts = append(texts, (*C.char)(C.CBytes(append([]byte(s), 0))))
		return texts[len(texts)-1], C.size_t(len(s))
	}
	for i, name := range names {
		x := &list[i]
		x.size, x.n = C.sizeof_gp_option, 1
		x.name, x.name_size = text(name)
		value := unsafe.Pointer(&x.anon0)
		switch v := o[name].(type) {
		case string:
			x._type = C.GPJRT_STRING
			*(**C.char)(value), x.n = text(v)
		case int:
			x._type, *(*int64)(value) = C.GPJRT_INT64, int64(v)
		case int64:
			x._type, *(*int64)(value) = C.GPJRT_INT64, v
		case []int64:
			x._type, x.n = C.GPJRT_INT64S, C.size_t(len(v))
			b := (*C.char)(C.CBytes(unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), 8*len(v))))
			texts = append(texts, b)
			*(**C.char)(value) = b
		case float32:
			x._type, *(*float32)(value) = C.GPJRT_FLOAT, v
		case float64:
			x._type, *(*float32)(value) = C.GPJRT_FLOAT, float32(v)
		case bool:
			x._type, *(*bool)(value) = C.GPJRT_BOOL, v
		}
	}
	var client, device unsafe.Pointer
	var devices C.size_t
	var hardware C.int
	if s := said(C.gp_client(api, &list[0], C.size_t(len(names)), &client, &device, &devices, &hardware)); s != "" {
		return s
	}
	c.handle, c.device, c.hardware = uintptr(client), uintptr(device), max(int(hardware), 0)
	read := func(s *C.char, p *C.char, n C.size_t) string {
		if said(s) != "" {
			return ""
		}
		return strings.ToValidUTF8(C.GoStringN(p, C.int(n)), "?")
	}
	var p *C.char
	var n C.size_t
	e := C.gp_text_of(api, C.GPJRT_Client_PlatformName, client, &p, &n)
	c.platform = strings.ToLower(read(e, p, n))
	e = C.gp_text_of(api, C.GPJRT_Client_PlatformVersion, client, &p, &n)
	c.version = read(e, p, n)
	e = C.gp_kind(api, device, &p, &n)
	c.name = read(e, p, n)
	return ""
}

func destroyClient(api, h uintptr) string { return destroy(api, C.GPJRT_Client_Destroy, h) }

func destroy(api uintptr, place int, h uintptr) string {
	return said(C.gp_destroy(table(api), C.int(place), pointer(h)))
}

func memoryOf(api, device uintptr) (Memory, string) {
	var m Memory
	s := said(C.gp_memory_of(table(api), pointer(device), (*C.int64_t)(&m.InUse), (*C.int64_t)(&m.Peak),
		(*C.int64_t)(&m.Limit)))
	return m, s
}

func statsOf(v *[11]C.int64_t) Stats {
	return Stats{Code: int64(v[0]), Args: int64(v[1]), Results: int64(v[2]), Alias: int64(v[3]), Temp: int64(v[4]),
		Peak: int64(v[10])}
}

func compileFor(api uintptr, platform, target, text string, options []byte) (Stats, string) {
	name := C.CString(platform)
	defer C.free(unsafe.Pointer(name))
	var v [11]C.int64_t
	s := said(C.gp_compile_target(table(api), name, chars(target), C.size_t(len(target)), chars(text), C.size_t(len(text)),
		octets(options), C.size_t(len(options)), &v[0]))
	return statsOf(&v), s
}

func compile(api, client uintptr, text string, options []byte) (uintptr, int, Stats, string) {
	var m C.gp_program_made
	s := said(C.gp_compile_text(table(api), pointer(client), chars(text), C.size_t(len(text)), octets(options),
		C.size_t(len(options)), &m))
	return uintptr(m.executable), int(m.results), statsOf(&m.stats), s
}

func load(api, client uintptr, saved []byte) (uintptr, int, Stats, string) {
	var m C.gp_program_made
	s := said(C.gp_load_program(table(api), pointer(client), octets(saved), C.size_t(len(saved)), &m))
	return uintptr(m.executable), int(m.results), statsOf(&m.stats), s
}

func save(api, h uintptr) ([]byte, string) {
	var p *C.char
	var n C.size_t
	if s := said(C.gp_save_program(table(api), pointer(h), &p, &n)); s != "" {
		return nil, s
	}
	defer C.free(unsafe.Pointer(p))
	return append([]byte(nil), unsafe.Slice((*byte)(unsafe.Pointer(p)), int(n))...), ""
}

func put(api, client, device uintptr, data unsafe.Pointer, sh *shape) (uintptr, string) {
	var b unsafe.Pointer
	s := said(C.gp_put_host(table(api), pointer(client), pointer(device), data, C.int(sh.code), ints(sh.dims),
		C.size_t(len(sh.dims)), &b))
	return uintptr(b), s
}

// view makes a view. Once nothing reads its memory any more, freeMark(mark) is true.
func view(api, client, device, at uintptr, sh *shape) (h uintptr, mark unsafe.Pointer, text string) {
	var b unsafe.Pointer
	text = said(C.gp_view_of(table(api), pointer(client), pointer(device), C.uintptr_t(at), C.int(sh.code),
		ints(sh.dims), C.size_t(len(sh.dims)), &b, &mark))
	return uintptr(b), mark, text
}

// marksSet counts the marks that were set.
func marksSet() int64 { return atomic.LoadInt64((*int64)(unsafe.Pointer(&C.gp_marks_set))) }

// freeMark frees a mark, if it is set.
func freeMark(mark unsafe.Pointer) bool {
	if atomic.LoadInt32((*int32)(mark)) == 0 {
		return false
	}
	C.free(mark)
	return true
}

func get(api, h uintptr, dst unsafe.Pointer, sh *shape) string {
	return said(C.gp_get_to(table(api), pointer(h), dst, C.size_t(sh.elements()*sh.bytes), C.size_t(len(sh.dims))))
}

func shapeOf(api, h uintptr) (*shape, string) {
	var code C.int
	var dims [mostDims]int64
	var n C.size_t
	if s := said(C.gp_shape(table(api), pointer(h), &code, ints(dims[:]), C.size_t(len(dims)), &n)); s != "" {
		return nil, s
	}
	k, ok := kindOf(func(k kind) bool { return k.code == int(code) })
	if !ok {
		return nil, "12: elements of a type that package xla does not have"
	}
	sh := &shape{kind: k, dims: append([]int64(nil), dims[:n]...)}
	sh.name()
	return sh, ""
}

func addressOf(api, h uintptr) (uintptr, string) {
	var at C.uintptr_t
	s := said(C.gp_address(table(api), pointer(h), &at))
	return uintptr(at), s
}

func await(api, h uintptr) string { return said(C.gp_await(table(api), pointer(h))) }

func awaitOn(api, h, stream uintptr) string {
	return said(C.gp_await_on(table(api), pointer(h), C.intptr_t(stream)))
}

func execute(api, exec, device uintptr, in []uintptr, keep []int64, out []uintptr) string {
	defer runtime.KeepAlive(in)
	return said(C.gp_execute(table(api), pointer(exec), pointer(device),
		(*unsafe.Pointer)(unsafe.Pointer(unsafe.SliceData(in))), C.size_t(len(in)),
		ints(keep), C.size_t(len(keep)), (*unsafe.Pointer)(unsafe.Pointer(unsafe.SliceData(out)))))
}
