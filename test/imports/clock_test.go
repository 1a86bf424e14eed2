package imports

import (
	"go/ast"
	"slices"
	"strings"
)

// The wall clock may be set, forwards and back, while a job runs. So nothing below these directories measures by it: a
// time.Time keeps a monotonic reading from time.Now on, which each of wallNames takes away.
var monotonic = []string{"ccl", "cuda", "gpu", "internal", "mpi", "rocm", "xpu"}

var wallNames = []string{"Unix", "UnixMicro", "UnixMilli", "UnixNano", "UTC", "ModTime", "CLOCK_REALTIME", "Gettimeofday"}

// What measures a time takes time.Since of a time.Time that was never converted. The wall clock made Close wait for as long as it
// was set back.
var monotonicTime = rule{
	name: "time is monotonic", dirs: monotonic,
	finds: func(src *source, bad func(string)) {
		if strings.HasPrefix(src.name, "internal/tools/") {
			return
		}
		each(src.File, func(s *ast.SelectorExpr) {
			if slices.Contains(wallNames, s.Sel.Name) {
				bad(src.name + " " + s.Sel.Name)
			}
		})
	},
	allowed: []string{
		"ccl/boot/dial.go Unix",              // a deadline that has passed
		"ccl/boot/pmi.go Unix",               // the same
		"ccl/boot/relay.go Unix",             // the same
		"internal/relay/relay.go Unix",       // the same
		"internal/files/files.go ModTime",    // is compared with what it was
		"ccl/internal/inject/on.go UnixNano", // is printed
		"ccl/internal/join/server.go Unix",   // a deadline that has passed
		"ccl/internal/tcp/open.go Unix",      // the same
		"ccl/trace.go UTC",                   // is printed
		"internal/value/time.go UTC",         // a program's time, on its way to other ranks
		"internal/value/time.go Unix",        // the same
	},
	planted: map[string]string{
		"ccl/a.go":      "package a\nimport \"time\"\nfunc f(at int64) {\n\tat = time.Now().UnixNano()\n\ttime.Sleep(time.Second - time.Since(time.Unix(0, at)))\n}\n",
		"ccl/b.go":      "package a\nimport \"time\"\nfunc g(at time.Time) time.Duration { return time.Since(at) }\n",
		"ccl/c_test.go": "package a\nvar x = time.Now().Unix()\n",
	},
	want: []string{"ccl/a.go Unix", "ccl/a.go UnixNano"},
}

// clockNames are what tells the time, or ends something by it. Sleep is not among them: a loop that looks again and again measures nothing.
var clockNames = map[string][]string{
	"time":    {"Now", "Since", "Until", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick"},
	"context": {"WithTimeout", "WithTimeoutCause", "WithDeadline", "WithDeadlineCause"},
	"net":     {"DialTimeout"},
}

// A pause of the whole job ends nothing: whoever waits for others counts the time that it has lived through, by package lived or by the
// clocks of a job, which package plane keeps. What is listed here measures or prints, looks around, or is about this process alone.
var oneClock = rule{
	name: "time is lived time", dirs: []string{"ccl", "internal/lobby"},
	finds: func(src *source, bad func(string)) {
		if strings.HasPrefix(src.name, "ccl/boot/") || strings.HasPrefix(src.name, "ccl/ccltest/") || strings.HasPrefix(src.name, "ccl/internal/inject/") {
			return // before a job begins; tests
		}
		each(src.File, func(s *ast.SelectorExpr) {
			if p, ok := s.X.(*ast.Ident); ok && slices.Contains(clockNames[p.Name], s.Sel.Name) {
				bad(src.name + " " + p.Name + "." + s.Sel.Name)
			}
		})
	},
	allowed: []string{
		// Package plane has the clocks of a job: its monitor moves them on.
		"ccl/internal/plane/clock.go time.Now", "ccl/internal/plane/clock.go time.Since",
		"ccl/internal/plane/monitor.go time.Now", "ccl/internal/plane/monitor.go time.NewTimer",
		// These ask the clocks of a job at every tick, or when the kernel says that a moment has passed.
		"ccl/internal/plane/job.go time.NewTicker", "ccl/internal/plane/watch/neighbors.go time.Now", "ccl/internal/plane/succession.go time.NewTicker",
		// How long a wait gives way before it sleeps, how long it sleeps, and by how much it wakes late.
		"ccl/internal/plane/doorbell.go time.NewTimer", "ccl/internal/plane/doorbell.go time.Now", "ccl/internal/plane/doorbell.go time.Since",
		"ccl/internal/plane/doorbell.go time.Until",
		"ccl/internal/plane/wait.go time.Now", "ccl/internal/plane/wait.go time.Since", "ccl/internal/tcp/pump.go time.AfterFunc",
		"ccl/internal/tcp/polled_unix.go time.NewTimer", "ccl/internal/tcp/waits_unix.go time.Now", "ccl/internal/tcp/waits_unix.go time.Until",
		// How often a loop looks around.
		"ccl/internal/plane/blame.go time.After",
		"ccl/device.go time.NewTicker", "ccl/internal/native/connect.go time.NewTicker", "ccl/internal/native/oneccl/library.go time.NewTicker",
		"ccl/internal/native/start.go time.NewTicker", "ccl/internal/shrink/agreement.go time.Now", "ccl/internal/shrink/agreement.go time.Since",
		"ccl/internal/shrink/wait.go time.Now", "ccl/internal/shrink/wait.go time.Since",
		// A limit that is counted in such looks, of which a pause is one.
		"ccl/backlog.go time.AfterFunc",
		// How long something took, for the user, or for what an error says; and how old a number is that is read anew.
		"ccl/device.go time.Now", "ccl/device.go time.Since", "ccl/order.go time.Now", "ccl/order.go time.Since", "ccl/launch.go time.Since", "ccl/observe.go time.Now", "ccl/observe.go time.Since",
		"ccl/internal/plane/ask.go time.Since", "ccl/internal/tcp/open.go time.Now", "ccl/internal/tcp/open.go time.Since", "ccl/observe_device.go time.Now", "ccl/trace.go time.Now", "ccl/internal/native/cside/cside.go time.Now",
		"ccl/internal/native/cside/cside.go time.Since", "ccl/internal/shm/cgroup_linux.go time.Now", "ccl/internal/shm/cgroup_linux.go time.Since",
		// The kernel ends a handshake, which the other end begins anew, a write to a neighbor, or what is left of a stream that is closed.
		"ccl/internal/plane/ask.go time.Now", "ccl/internal/plane/control/conn.go time.Now", "ccl/internal/plane/mail.go time.Now", "ccl/internal/tcp/node.go time.Now",
		"ccl/internal/tcp/pump.go time.Now",
		// Close waits for what is under way. A pause makes it wait for less.
		"ccl/life.go time.NewTimer", "ccl/close.go time.Now", "ccl/close.go time.Until",
		// How often messages are looked at.
		"ccl/internal/mail/account.go time.NewTicker", "ccl/internal/mail/office.go time.NewTicker",
	},
	planted: map[string]string{
		"ccl/a.go":                 "package a\nfunc f(ctx context.Context, d time.Duration) {\n\tctx, end := context.WithTimeout(ctx, d)\n\tdefer end()\n\tfor until := time.Now().Add(d); time.Now().Before(until); time.Sleep(d) {\n\t}\n}\n",
		"ccl/internal/b/b.go":      "package b\nvar t, u = time.After(1), time.NewTicker(1)\nvar c, _ = net.DialTimeout(\"tcp\", \"\", 1)\nfunc Now() { b.Now(); lived.Within(nil, 1); time.Sleep(1) }\n",
		"ccl/internal/b/b_test.go": "package b\nvar t = time.Now()\n",
		"ccl/boot/c.go":            "package boot\nvar t = time.Now()\n",
		"internal/lobby/l.go":      "package lobby\nvar t = time.AfterFunc(1, nil)\n",
	},
	want: []string{"ccl/a.go context.WithTimeout", "ccl/a.go time.Now", "ccl/internal/b/b.go net.DialTimeout", "ccl/internal/b/b.go time.After", "ccl/internal/b/b.go time.NewTicker", "internal/lobby/l.go time.AfterFunc"},
}
