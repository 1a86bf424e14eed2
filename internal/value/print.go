package value

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"io"
	"reflect"
	"strconv"
)

// printOf is a hash of all that the bytes of a value of type t depend on: two programs that have
// the same read them alike.
func printOf(t reflect.Type) uint64 {
	h := fnv.New64a()
	fmt.Fprint(h, "1 ", strconv.IntSize, binary.NativeEndian.Uint16([]byte{1, 0}))
	describe(h, t, map[reflect.Type]int{})
	return h.Sum64()
}

// describe writes t: its parts, or the number of one that it has written before.
func describe(w io.Writer, t reflect.Type, seen map[reflect.Type]int) {
	if n, ok := seen[t]; ok {
		fmt.Fprint(w, " #", n)
		return
	}
	seen[t] = len(seen)
	if t == timeType || ownWay(t) != nil {
		fmt.Fprint(w, " own ", t)
		return
	}
	fmt.Fprint(w, " ", t.Kind())
	switch t.Kind() {
	case reflect.Map:
		describe(w, t.Key(), seen)
		describe(w, t.Elem(), seen)
	case reflect.Array:
		fmt.Fprint(w, " ", t.Len())
		describe(w, t.Elem(), seen)
	case reflect.Pointer, reflect.Slice:
		describe(w, t.Elem(), seen)
	case reflect.Struct:
		fmt.Fprint(w, "{")
		for i := range t.NumField() {
			if f := t.Field(i); !hides(f) {
				fmt.Fprintf(w, " %q", f.Name)
				describe(w, f.Type, seen)
			}
		}
		fmt.Fprint(w, "}")
	}
}
