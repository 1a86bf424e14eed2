package cuda_test

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/cuda"
)

// The types are aliases, whose methods go doc does not show: the comment of each type lists them.
func TestMethodsAreListed(t *testing.T) {
	for _, file := range []string{"cuda.go", "../rocm/rocm.go"} {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, v := range []any{cuda.Device{}, &cuda.Stream{}, &cuda.Event{}, &cuda.Graph{}, &cuda.Mem[int8]{}, &cuda.Host[int8]{}} {
			typ := reflect.TypeOf(v)
			name := strings.TrimPrefix(strings.TrimPrefix(typ.String(), "*"), "gpu.")
			name, _, _ = strings.Cut(name, "[")
			list, _, found := strings.Cut(string(source), "\ntype "+name)
			require.True(t, found, "%s: %s", file, name)
			list = list[strings.LastIndex(list, "\n\n"):]
			for i := range typ.NumMethod() {
				if m := typ.Method(i).Name; m != "String" {
					require.Contains(t, list, "\n//\t"+m+"(", "%s: %s", file, name)
				}
			}
		}
	}
}
