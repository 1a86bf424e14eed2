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
		text, err := readSecret(path)
		if err = cmp.Or(err, weak(text, path)); err != nil {
			return nil, fmt.Errorf("%s: %w", environ.SecretFile.Name, err)
		}
		return Bytes(text), nil
	}
	text := bytes.TrimSpace([]byte(environ.SecretText.Text(getenv)))
	if len(text) == 0 {
		return nil, nil
	}
	if err := weak(text, "it"); err != nil {
		return nil, fmt.Errorf("%s: %w", environ.SecretText.Name, err)
	}
	return Bytes(text), nil
}

// In is FromEnv of an environment that is a list of NAME=VALUE.
func In(env []string) ([]byte, error) { return FromEnv(environ.Of(env)) }

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

// weak is the error for a text of a secret that could be guessed.
func weak(text []byte, where string) error {
	secret, read := Bytes(text), ""
	if len(secret) < len(text) {
		read = fmt.Sprintf(" (%d hex digits, which stand for bytes)", len(text))
	}
	switch {
	case bytes.HasPrefix(bytes.ToUpper(secret), []byte(placeholder)):
		return fmt.Errorf("%s still holds the placeholder %s: put a secret there, such as openssl rand -hex 32 prints",
			where, placeholder)
	case len(secret) < minSecret:
		return fmt.Errorf("%s holds %d bytes%s, and fewer than %d can be guessed: take what openssl rand -hex 32 prints",
			where, len(secret), read, minSecret)
	}
	return nil
}

// readSecret reads the text of a secret's file. The permissions checked are those of the open
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
	if text = bytes.TrimSpace(text); len(text) == 0 {
		return nil, errors.New(path + " is empty")
	}
	return text, nil
}

// Bytes returns what a secret stands for, wherever it is given: hex digits for their bytes, whatever white
// space is around them, and anything else for itself. So a secret has one meaning in a variable, a file and
// an argument. What it returns stands for itself.
func Bytes(secret []byte) []byte {
	for {
		text := bytes.TrimSpace(secret)
		decoded := make([]byte, hex.DecodedLen(len(text)))
		if _, err := hex.Decode(decoded, text); err != nil || len(text) == 0 {
			return secret
		}
		secret = decoded
	}
}
