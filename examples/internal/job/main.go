package job

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/goccl/goccl/ccl/boot"
)

// Output is what a program says to W. Failed is the first error of that.
type Output struct {
	W      io.Writer
	Failed error
}

func (o *Output) Write(b []byte) (int, error) {
	n, err := o.W.Write(b)
	o.Failed = cmp.Or(o.Failed, err)
	return n, err
}

// Main is a program whose flags ask for np ranks, or were wrong: it starts these, if no launcher has, or is one of
// them. Where ranks may be lost, lossy is set, and the others count. A program whose output is lost has failed.
func Main(name string, np int, lossy bool, wrong error, out *Output, rank func(ctx context.Context) error) {
	launch, bad := boot.Detect(os.Getenv)
	started := bad == nil && launch.Launcher != "none"
	if wrong == nil && started && np > 0 && launch.Size > 0 && np != launch.Size {
		wrong = fmt.Errorf("-np %d, and the launcher has started %d ranks: leave -np out", np, launch.Size)
	}
	err, code := wrong, 0
	switch {
	case errors.Is(wrong, flag.ErrHelp):
		err = nil
	case wrong != nil:
		code = 2
	case np > 1 && !started:
		code, err = Spawn(np, lossy)
	default:
		err = rank(context.Background())
	}
	if err = cmp.Or(err, out.Failed); err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
		code = max(code, 1)
	}
	if code != 0 {
		os.Exit(code)
	}
}
