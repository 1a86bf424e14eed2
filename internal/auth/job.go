package auth

import (
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"

	"github.com/goccl/goccl/internal/environ"
)

// Secret is what the processes of one job know and nobody else does, or the word that they may do
// without. The zero Secret is neither: no connection is begun with it. So whatever opens one, every
// bootstrap and every store too, has its Secret from one of the functions below, and only None and
// Settle, which ask GOCCL_REQUIRE_SECRET, return one that strangers can have.
type Secret struct {
	key  []byte
	kind kind
}

type kind uint8

const (
	unsettled kind = iota
	open           // there is none, or what the key was made of is none
	byKernel       // none is needed where the kernel says whose process is at the other end
	known          // to the job's processes alone
)

// Settle completes the secret of a job: own, which the program or the bootstrap has given; else
// that of env, an environment as os.Environ returns it; else None.
func Settle(own []byte, env []string) (Secret, error) {
	if len(own) > 0 {
		if err := weak(own, "it"); err != nil {
			return Secret{}, err
		}
		return Given(own), nil
	}
	given, err := In(env)
	if err != nil || given != nil {
		return Given(given), err
	}
	return None(env)
}

// Given is the Secret in b, which came from where only the job's processes can have left it: see
// Bytes. Of nothing it is the zero Secret.
func Given(b []byte) Secret {
	if len(b) == 0 {
		return Secret{}
	}
	return Secret{slices.Clone(Bytes(b)), known}
}

// None is that a job has no secret: ErrRequired where GOCCL_REQUIRE_SECRET says that it needs one.
func None(env []string) (Secret, error) {
	getenv := environ.Of(env)
	required, err := environ.RequireSecret.From(getenv)
	switch {
	case err != nil:
		return Secret{}, err
	case required:
		return Secret{}, fmt.Errorf("%s=%s, but %w%s: %s", environ.RequireSecret.Name, environ.RequireSecret.Text(getenv),
			ErrRequired, emptied(env), needsSecretFile)
	}
	return Secret{nil, open}, nil
}

// ByKernel is for connections that never leave this host: Unix sockets, at which the kernel says
// whose process is at the other end. It is refused at all others.
func ByKernel() Secret { return Secret{nil, byKernel} }

// ErrRequired is the error for a job that is to have a secret and has none.
var ErrRequired = errors.New("the job has no secret")

const needsSecretFile = "give all ranks the same GOCCL_SECRET_FILE, a file that only its owner can read"

// errUnsettled is a mistake in goccl itself.
var errUnsettled = errors.New("auth: a connection before the job's secret is settled")

// Warning is what a job without a secret says once, where other hosts can reach its ports.
func Warning(env []string) string {
	return "this job has no secret" + emptied(env) +
		": anyone who can reach its ports can join it. Give all ranks the same GOCCL_SECRET_FILE, a file that only its owner can read."
}

// IsZero reports whether s is still to be settled.
func (s Secret) IsZero() bool { return s.kind == unsettled }

// Known reports whether a peer that proves s belongs to the job.
func (s Secret) Known() bool { return s.kind == known }

// Keyed reports whether connections are sealed with s.
func (s Secret) Keyed() bool { return len(s.key) > 0 }

// Bytes is the secret, nil if there is none.
func (s Secret) Bytes() []byte { return slices.Clone(s.key) }

// Derive makes the Secret of a part of the job of s and what all in that part have been told. It is
// known as far as s is.
func (s Secret) Derive(label string, told []byte) Secret {
	h := hmac.New(sha256.New, s.key)
	io.WriteString(h, label)
	h.Write(told)
	return Secret{h.Sum(nil), s.kind}
}

// begins is the key of a connection that is about to begin.
func (s Secret) begins(conn net.Conn) ([]byte, error) {
	_, unix := conn.(*net.UnixConn)
	if s.kind == unsettled || s.kind == byKernel && !unix {
		return nil, errUnsettled
	}
	return s.key, nil
}

// emptied says so where a variable for the secret is set and holds nothing.
func emptied(env []string) string {
	if name := Blank(env); name != "" {
		return " (" + name + " is set, but empty, which is none)"
	}
	return ""
}
