package ccl

import (
	"errors"
	"net/netip"
	"os"

	"github.com/goccl/goccl/ccl/internal/cpu"
	"github.com/goccl/goccl/internal/auth"
)

// settleSecret completes the secret of a job that meets by way of that, a Bootstrap or a
// boot.Store: its own, else that of the environment, else none, which is an error where one is
// required.
func settleSecret(way any) (auth.Secret, error) {
	var own []byte
	if s, ok := way.(interface{ Secret() []byte }); ok {
		own = s.Secret()
	}
	return auth.Settle(own, os.Environ())
}

// jobSecret is the secret of the job that b describes. in is not nil where the job has grown. A job
// of one rank opens no port.
func jobSecret(b Bootstrap, in *arrival) (auth.Secret, error) {
	switch {
	case in != nil:
		return in.secret, nil
	case b.Size() == 1:
		return auth.ByKernel(), nil
	}
	return settleSecret(b)
}

// secretCode is the Code of an error of settleSecret.
func secretCode(err error) Code {
	if errors.Is(err, auth.ErrRequired) {
		return ErrUnauthorized
	}
	return ErrArgument
}

// hasSecret says whether there is one, for people.
func hasSecret(s auth.Secret) string {
	if s.Known() {
		return "yes"
	}
	return "none"
}

// tellOpen has rank 0 warn where the job has no secret, and other hosts can reach its ports: those
// of its data, or where its ranks have met. A job that has grown has warned before, if it was open
// before.
func tellOpen(c *cpu.Comm, o *Options, b Bootstrap, secret auth.Secret, in *arrival) {
	if secret.Known() || b.Rank() != 0 || b.Size() == 1 || in != nil && in.open {
		return
	}
	met := netip.Addr{}
	if a, ok := b.(interface{ Addr() netip.Addr }); ok {
		met = a.Addr()
	}
	if met.IsValid() && !met.IsLoopback() || isOpen(c) {
		o.Log.Warn("ccl: " + auth.Warning(os.Environ()))
	}
}

// isOpen reports whether other hosts can reach a port of the job of c.
func isOpen(c *cpu.Comm) bool {
	all := &c.Control().Site.Job.Net.Addrs
	for r := range all.Len() {
		if !all.At(r).Addr().IsLoopback() {
			return true
		}
	}
	return false
}
