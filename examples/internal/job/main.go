package job

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/goccl/goccl/ccl/boot"
)

// Main is a program whose flags ask for np ranks, or were wrong: it starts these, if no launcher has, or is one of
// them. Where ranks may be lost, lossy is set, and the others count.
func Main(name string, np int, lossy bool, wrong error, rank func(ctx context.Context) error) {
	if errors.Is(wrong, flag.ErrHelp) {
		return
	}
	launch, bad := boot.Detect(os.Getenv)
	started := bad == nil && launch.Launcher != "none"
	if wrong == nil && started && np > 0 && launch.Size > 0 && np != launch.Size {
		wrong = fmt.Errorf("-np %d, and the launcher has started %d ranks: leave -np out", np, launch.Size)
	}
	err, code := wrong, 2
	if err == nil {
		if code = 1; np > 1 && !started {
			code, err = Spawn(np, lossy)
		} else if err = rank(context.Background()); err == nil {
			code = 0
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, name+":", err)
	}
	if code != 0 {
		os.Exit(code)
	}
}
