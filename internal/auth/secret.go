package auth

import (
	"bytes"
	"cmp"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/goccl/goccl/internal/environ"
	"github.com/goccl/goccl/internal/files"
)

const (
	// minSecret is the fewest bytes of a secret that cannot be found by trying all.
	minSecret = 16
	// maxSecret bounds what is read of a secret's file.
	maxSecret = 4 << 10
	// placeholder begins what a manifest has where a secret is to be put in.
	placeholder = "REPLACE-ME"
)

// NewSecret makes a secret for a job: 32 random bytes. Pass it on as hex.
func NewSecret() []byte {
	s := make([]byte, 32)
	rand.Read(s) // never fails: crypto/rand's promise since Go 1.24
	return s
}

// FromEnv returns the secret that the environment gives this job: the content of
// the file that GOCCL_SECRET_FILE names, which only its owner may read; else the
// value of GOCCL_SECRET; else nil. White space around it does not count. What is
// hex stands for its bytes, any other text for itself. A secret that could be guessed is refused.
func FromEnv(getenv func(string) string) ([]byte, error) {
	if path := environ.SecretFile.Text(getenv); path != "" {
		secret, err := readSecret(path)
		if err = cmp.Or(err, weak(secret, path)); err != nil {
			return nil, fmt.Errorf("%s: %w", environ.SecretFile.Name, err)
		}
		return secret, nil
	}
	secret := parseSecret([]byte(environ.SecretText.Text(getenv)))
	if secret == nil {
		return nil, nil
	}
	if err := weak(secret, "it"); err != nil {
		return nil, fmt.Errorf("%s: %w", environ.SecretText.Name, err)
	}
	return secret, nil
}

// In is FromEnv of an environment that is a list of NAME=VALUE.
func In(env []string) ([]byte, error) {
	return FromEnv(func(name string) string {
		for _, e := range slices.Backward(env) { // the last of several counts
			if value, ok := strings.CutPrefix(e, name+"="); ok {
				return value
			}
		}
		return ""
	})
}

// Provide returns an environment, a list of NAME=VALUE, in which a job has a secret: that of env, or a
// new one. Variables for it that hold nothing are left out. The error is for a secret that is refused.
func Provide(env []string) ([]string, error) {
	has, err := In(env)
	if has != nil || err != nil {
		return env, err
	}
	env = slices.DeleteFunc(slices.Clone(env), func(e string) bool {
		name, _, _ := strings.Cut(e, "=")
		return name == environ.SecretText.Name || name == environ.SecretFile.Name
	})
	return append(env, environ.SecretText.Set(hex.EncodeToString(NewSecret()))), nil
}

// Blank returns the name of a variable for the secret that is set in an environment and holds nothing,
// as it does where a command that should have printed the secret has failed; else "".
func Blank(env []string) string {
	for _, e := range env {
		for _, v := range []*environ.Var{&environ.SecretText.Var, &environ.SecretFile.Var} {
			if value, set := strings.CutPrefix(e, v.Name+"="); set && strings.TrimSpace(value) == "" {
				return v.Name
			}
		}
	}
	return ""
}

// weak is the error for a secret that could be guessed.
func weak(secret []byte, where string) error {
	switch {
	case bytes.HasPrefix(bytes.ToUpper(secret), []byte(placeholder)):
		return fmt.Errorf("%s still holds the placeholder %s: put a secret there, such as openssl rand -hex 32 prints", where, placeholder)
	case len(secret) < minSecret:
		return fmt.Errorf("%s holds %d bytes, and fewer than %d can be guessed: take what openssl rand -hex 32 prints", where, len(secret), minSecret)
	}
	return nil
}

// readSecret reads a secret's file. The permissions checked are those of the open
// file, so that it cannot be swapped in between.
func readSecret(path string) ([]byte, error) {
	f, _, err := files.Open(path, maxSecret)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	// Windows has access lists; the mode that Go reports there says nothing.
	if mode := info.Mode().Perm(); mode&0o077 != 0 && runtime.GOOS != "windows" {
		return nil, fmt.Errorf("%s has mode %04o: others can read the secret; run chmod 600 %[1]s", path, mode)
	}
	text, err := io.ReadAll(io.LimitReader(f, maxSecret))
	if err != nil {
		return nil, err
	}
	secret := parseSecret(text)
	if secret == nil {
		return nil, errors.New(path + " is empty")
	}
	return secret, nil
}

// parseSecret returns nil for nothing but white space.
func parseSecret(text []byte) []byte {
	text = bytes.TrimSpace(text)
	if len(text) == 0 {
		return nil
	}
	secret := make([]byte, hex.DecodedLen(len(text)))
	if _, err := hex.Decode(secret, text); err == nil {
		return secret
	}
	return text
}
