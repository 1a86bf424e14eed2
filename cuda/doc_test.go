package cuda_test

import (
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/cuda"
)

// The types are names for others, so `go doc` shows no methods: the packages' comments list them.
func TestMethodsAreListed(t *testing.T) {
	for _, file := range []string{"cuda.go", "../rocm/rocm.go"} {
		source, err := os.ReadFile(file)
		require.NoError(t, err)
		_, list, _ := strings.Cut(string(source), "// The methods,")
		list, _, _ = strings.Cut(list, "\npackage ")
		for _, v := range []any{cuda.Device{}, &cuda.Stream{}, &cuda.Event{}, &cuda.Graph{}, &cuda.Mem[int8]{}, &cuda.Host[int8]{}} {
			typ := reflect.TypeOf(v)
			name := strings.TrimPrefix(typ.String(), "*gpu.")
			name = strings.TrimPrefix(name, "gpu.")
			name, _, _ = strings.Cut(name, "[")
			row := regexp.MustCompile(`(?m)^//\t` + name + ` .*(\n//\t {2}.*)*`).FindString(list)
			require.NotEmpty(t, row, "%s: %s", file, name)
			listed := strings.Fields(strings.ReplaceAll(row, "//\t", " "))[1:]
			var methods []string
			for i := range typ.NumMethod() {
				if m := typ.Method(i).Name; m != "String" {
					methods = append(methods, m)
				}
			}
			require.ElementsMatch(t, methods, listed, "%s: %s", file, name)
		}
	}
}
