//go:build oneccl && !(cgo && linux)

package oneccl

import (
	"errors"
	"runtime"

	"github.com/goccl/goccl/internal/engine"
)

// library is one that this build cannot open.
type library struct{}

func describe(_ *library, err error) (*engine.Library, error) { return nil, err }

// open says what this build lacks.
func open() (*library, error) {
	if runtime.GOOS != "linux" {
		return nil, errors.New("oneccl: oneCCL is opened only on Linux")
	}
	return nil, errors.New("oneccl: this program was built without cgo, which loading oneCCL needs: build it with CGO_ENABLED=1 and a C compiler")
}

func setLocal(local, locals int) {}
