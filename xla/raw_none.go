//go:build !xla || !cgo || !linux

package xla

import "unsafe"

// What raw_cgo.go calls is not there: Open refuses, and nothing of the rest can be reached.

func built() error {
	return unavailable("this program was built without XLA: build it with -tags xla and CGO_ENABLED=1, with a C compiler, on Linux")
}

const (
	absent                    = "12: built without XLA"
	placeProgram, placeBuffer = 0, 0
)

func start(uintptr, *uintptr) string            { return absent }
func version(uintptr) (major, minor int)        { return 0, 0 }
func hasStreams(uintptr) bool                   { return false }
func (c *Client) open([]string, Options) string { return absent }
func destroyClient(_, _ uintptr) string         { return absent }
func destroy(uintptr, int, uintptr) string      { return absent }
func memoryOf(_, _ uintptr) (Memory, string)    { return Memory{}, absent }
func save(_, _ uintptr) ([]byte, string)        { return nil, absent }
func shapeOf(_, _ uintptr) (*shape, string)     { return nil, absent }
func addressOf(_, _ uintptr) (uintptr, string)  { return 0, absent }
func await(_, _ uintptr) string                 { return absent }
func awaitOn(_, _, _ uintptr) string            { return absent }
func marksSet() int64                           { return 0 }
func freeMark(unsafe.Pointer) bool              { return false }

func view(_, _, _, _ uintptr, _ *shape) (uintptr, unsafe.Pointer, string) { return 0, nil, absent }

func compileFor(uintptr, string, string, string, []byte) (Stats, string) { return Stats{}, absent }

func compile(_, _ uintptr, _ string, _ []byte) (uintptr, int, Stats, string) {
	return 0, 0, Stats{}, absent
}

func load(_, _ uintptr, _ []byte) (uintptr, int, Stats, string) { return 0, 0, Stats{}, absent }

func put(_, _, _ uintptr, _ unsafe.Pointer, _ *shape) (uintptr, string) { return 0, absent }

func get(_, _ uintptr, _ unsafe.Pointer, _ *shape) string { return absent }

func execute(_, _, _ uintptr, _ []uintptr, _ []int64, _ []uintptr) string { return absent }
