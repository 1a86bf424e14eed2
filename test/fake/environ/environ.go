//go:build cgo && linux

// Package environ makes setenv safe beside getenv in the process of a test.
//
// os.Setenv calls C's setenv, which up to glibc 2.40 frees the array of the environment when it has
// no room for one more variable. The threads of the fake library ask for variables, and one that
// reads the array meanwhile reads what was freed: under AddressSanitizer, whose realloc always
// moves, that was a crash of TestCrosswise now and then. The setenv and unsetenv of this package
// come before those of the C library, make a new array for each change, and free nothing.
package environ

/*
#include <stdlib.h>
char **goccl_environ(void);
const char *goccl_environ_find(char **array, const char *name);
*/
import "C"

import "unsafe"

// View is the environment at a moment, as a thread holds it that is in getenv.
type View struct{ array **C.char }

// Look is the environment now.
func Look() View { return View{C.goccl_environ()} }

// Get is the value of a variable, "" if there is none.
func (v View) Get(name string) string {
	c := C.CString(name)
	defer C.free(unsafe.Pointer(c))
	return C.GoString(C.goccl_environ_find(v.array, c))
}
