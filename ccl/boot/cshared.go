package boot

import (
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/goccl/goccl/internal/environ"
)

// In a library for C, Go sees the environment with which the process was started. What the host
// program has set since, such as RANK and WORLD_SIZE, stays with C: without C there is no way to
// ask for it. So two processes of such a program would each become rank 0 of 1 without a word.
// libgoccl, which is C itself, gives Go the environment as C has it: there nothing is unseen.

const unseen = "goccl: this is a library for C (-buildmode=%s), which sees only the environment with which its process was started, " +
	"and in that there is no launcher: the job has one rank. What the host program has set since does not count. Set the variables before " +
	"the program starts, or give rank and size to boot.TCP or boot.File. GOCCL_LAUNCHER=none says that one rank is meant."

// warnUnseen says that the environment may not be what the host program meant, where l is that there is no launcher.
func warnUnseen(v *vars, l Launch, mode string) {
	if l.Launcher != "none" || environ.Launcher.Text(v.getenv) != "" || mode != "c-shared" && mode != "c-archive" {
		return
	}
	slog.Warn(fmt.Sprintf(unseen, mode))
}

// buildMode is how this program was linked, "" if that is not known, and for libgoccl.
func buildMode() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || strings.HasSuffix(info.Path, "/goccl/capi") { // a package main: no other library has it
		return ""
	}
	i := slices.IndexFunc(info.Settings, func(s debug.BuildSetting) bool { return s.Key == "-buildmode" })
	if i < 0 {
		return ""
	}
	return info.Settings[i].Value
}
