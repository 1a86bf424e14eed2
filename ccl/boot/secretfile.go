package boot

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"

	"github.com/goccl/goccl/internal/auth"
)

// Where a launcher says how to find rank 0, but gives the job no secret, rank 0 makes one, and leaves it in a
// directory that the job's hosts share: in a file that nobody else can read, named by job and
// step, and gone when all have joined.

// secretDir is a directory that the hosts of the job share: the user's home, or where the job was
// submitted; "" if no file system of theirs is known to be shared. All ranks must find the same.
func secretDir(v *vars) string {
	shared := v.shared
	if shared == nil {
		shared = isShared
	}
	for _, name := range []string{"HOME", "SLURM_SUBMIT_DIR", "PBS_O_WORKDIR"} {
		if dir := v.getenv(name); filepath.IsAbs(dir) && shared(dir) {
			return dir
		}
	}
	return ""
}

// keepSecretIn makes the job's secret one that rank 0 writes in dir.
func (m *joinConfig) keepSecretIn(dir string) {
	sum := sha256.Sum256([]byte("goccl secret file " + m.job))
	path := filepath.Join(dir, ".goccl-"+hex.EncodeToString(sum[:8]))
	m.made = true
	find, listen, met := m.find, m.listen, m.met
	m.find = func() (point, error) {
		p, err := find()
		if err == nil {
			p.secret, err = readSecretFile(path)
		}
		return p, err
	}
	m.listen = func(ctx context.Context) (net.Listener, auth.Secret, error) {
		// Before rank 0 can be found: a rank that finds it finds the secret, too.
		secret := auth.NewSecret()
		if err := replaceFile(path, []byte(hex.EncodeToString(secret))); err != nil {
			return nil, auth.Secret{}, fault(System,
				"rank 0 cannot write the job's secret for the other ranks: %v; set GOCCL_SECRET_FILE for all ranks", err)
		}
		l, _, err := listen(ctx)
		if err != nil {
			os.Remove(path)
		}
		return l, auth.Given(secret), err
	}
	m.met = func() {
		if met != nil {
			met()
		}
		os.Remove(path)
	}
}

// readSecretFile reads the secret at path, if it is this user's alone.
func readSecretFile(path string) (none auth.Secret, err error) {
	text, err := readPrivate(path, 1<<10)
	if errors.Is(err, fs.ErrNotExist) {
		return none, fault(System, "rank 0 has not written the job's secret to %s yet", path)
	} else if err != nil {
		return none, orFault(err, "the job's secret cannot be read")
	}
	secret, err := hex.DecodeString(string(bytes.TrimSpace(text)))
	if err != nil || len(secret) < 16 {
		return none, fault(System, "%s holds no secret: %d bytes", path, len(text))
	}
	return auth.Given(secret), nil
}
