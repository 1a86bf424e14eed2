//go:build (nccl || rccl) && !(cgo && linux)

package native

import (
	"fmt"
	"runtime"

	"github.com/goccl/goccl/internal/engine"
)

// library is one that this build cannot open.
type library struct{}

func describe(_ *library, err error) (*engine.Library, error) { return nil, err }

// open needs C, and the library is for Linux alone.
func (v *vendor) open() (*library, error) {
	if runtime.GOOS != "linux" {
		return nil, fmt.Errorf("%s: %s is for Linux, this is %s", v.name, v.title, runtime.GOOS)
	}
	return nil, fmt.Errorf("%s: built with -tags %s, but without cgo, which is needed to open %s; build with CGO_ENABLED=1 and a C compiler",
		v.name, v.name, v.search.Names[0])
}
