package doctor

import (
	"slices"
	"strings"
)

// has reports whether a host has the library of that name.
func (e *exam) has(name string) bool {
	return slices.ContainsFunc(e.ranks, func(f *facts) bool {
		return slices.ContainsFunc(f.Libraries, func(l library) bool { return l.Name == name })
	})
}

// logged tells what NCCL or RCCL says of itself, and where: of a call that fails they say why only
// there.
func (e *exam) logged() {
	if !e.has("nccl") && !e.has("rccl") {
		return
	}
	getenv := getenvOf(e.ranks[0].Env) // that all ranks have the same is checked elsewhere
	level, file := getenv("NCCL_DEBUG"), getenv("NCCL_DEBUG_FILE")
	switch {
	case level == "" && file == "":
		e.say("NCCL's log", ok, "", "none: with NCCL_DEBUG=WARN the library says why a call fails")
	case level == "":
		e.say("NCCL's log", warning, "NCCL_DEBUG=WARN", "NCCL_DEBUG_FILE=%s without NCCL_DEBUG: nothing is logged", file)
	case file == "":
		e.say("NCCL's log", ok, "", "NCCL_DEBUG=%s, on standard output; NCCL_DEBUG_FILE=nccl.%%h.%%p takes it to a file for each process", level)
	case len(e.ranks) > 1 && !strings.Contains(file, "%p"):
		e.say("NCCL's log", warning, "NCCL_DEBUG_FILE="+file+".%h.%p",
			"NCCL_DEBUG=%s, and all processes write into one file, %s", level, file)
	default:
		e.say("NCCL's log", ok, "", "NCCL_DEBUG=%s, in %s (%%h: the host, %%p: the process)", level, file)
	}
}
