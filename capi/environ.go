//go:build cgo && unix

package main

/*
extern char **environ;
static char **variables(void) { return environ; }
*/
import "C"

import (
	"os"
	"strings"
	"sync"
	"unsafe"
)

var environment sync.Mutex

// seeEnvironment gives Go the environment as C has it. Go's is that with which the process was
// started: what the program has set since, such as RANK and WORLD_SIZE, it does not see.
func seeEnvironment() {
	environment.Lock()
	defer environment.Unlock()
	now := map[string]string{}
	for p := C.variables(); p != nil && *p != nil; p = (**C.char)(unsafe.Add(unsafe.Pointer(p), unsafe.Sizeof(*p))) {
		if name, value, ok := strings.Cut(C.GoString(*p), "="); ok && name != "" {
			if _, twice := now[name]; !twice { // getenv finds the first
				now[name] = value
			}
		}
	}
	for _, v := range os.Environ() {
		if name, _, ok := strings.Cut(v, "="); ok && name != "" {
			if _, there := now[name]; !there {
				os.Unsetenv(name)
			}
		}
	}
	for name, value := range now {
		if old, there := os.LookupEnv(name); !there || old != value {
			os.Setenv(name, value)
		}
	}
}
