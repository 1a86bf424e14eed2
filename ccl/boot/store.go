package boot

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/environ"
)

// Store is a place where the processes of a job leave values for each other, by key. All of them
// see the same values. A [Hall] and [FileStore] are stores; another runtime's, such as PyTorch's,
// or a service is one behind these four methods. NewStore makes a bootstrap of a store, and in one a
// process that starts late finds the job that runs: see GOCCL_HALL.
//
// A key is used either by Set, Get and Wait or by Add. A key has at most MaxKey bytes. The methods
// may be called from any goroutine.
type Store interface {
	// Set gives key a value, in the place of an earlier one.
	Set(ctx context.Context, key string, value []byte) error
	// Get returns the value of key. It waits until there is one, or ctx ends.
	Get(ctx context.Context, key string) ([]byte, error)
	// Wait waits until all of the keys have values, or ctx ends.
	Wait(ctx context.Context, keys ...string) error
	// Add adds n to the number that key has, 0 at first, and returns the sum, in one atomic step.
	// With 0 it reads the number. A sum that no int64 has is an error, and the number stays.
	Add(ctx context.Context, key string, n int64) (int64, error)
}

const (
	// MaxKey is the most bytes of a key of a Store of this package.
	MaxKey = 1 << 10
	// MaxStored is the most bytes of a value of a Store of this package.
	MaxStored = 16 << 20
)

// OpenStore returns the store at a place, in the words of GOCCL_HALL: the [Hall] at host:port, or a
// directory that all processes share, /dir. The secret is the job's; nil takes that of the
// environment. It asks the store nothing yet.
func OpenStore(place string, secret []byte) (Store, error) {
	if strings.ContainsRune(place, os.PathSeparator) || filepath.IsAbs(place) {
		return FileStore(place, secret)
	}
	return DialHall(place, secret)
}

// EnvStore returns the store that GOCCL_HALL names, with the secret that the environment has, or nil
// where it names none.
func EnvStore() (Store, error) {
	place := environ.Hall.Text(os.Getenv)
	if place == "" {
		return nil, nil
	}
	s, err := OpenStore(place, nil)
	if err != nil {
		e := asError(err)
		return nil, fault(e.Code, "%s=%s: %s", environ.Hall.Name, place, e.Text)
	}
	return s, nil
}

// plus is the sum of the number of key and n.
func plus(key string, number, n int64) (int64, error) {
	sum := number + n
	if (sum > number) != (n > 0) {
		return 0, fault(Argument, "%d cannot be added to the number %d of %s: the sum is no int64", n, number, key)
	}
	return sum, nil
}

// party is how a process comes to a hall, or to a store in a directory: with its job's secret, and the job's name.
type party struct {
	secret auth.Secret
	job    string
}

// mostName is the most bytes of a job's name.
const mostName = 1 << 10

// ofJob is the party of a process in that environment, whose job has that secret; nil where the environment says.
func ofJob(secret []byte, env []string) (p party, err error) {
	if p.secret, err = auth.Settle(secret, env); err != nil {
		return p, secretFault(err)
	}
	return p, p.named(env)
}

// named gives p the name of its job.
func (p *party) named(env []string) error {
	if p.job = environ.JobName.Text(environ.Of(env)); len(p.job) > mostName {
		return fault(Argument, "%s has %d bytes; a hall takes at most %d", environ.JobName.Name, len(p.job), mostName)
	}
	if err := auth.Usable(); err != nil && p.secret.Keyed() {
		return fault(Unauthorized, "%v", err)
	}
	return nil
}

// Secret is the job's, nil if it has none.
func (p *party) Secret() []byte { return p.secret.Bytes() }

// otherJob is what a process hears that came to the store of a job as one of another job.
func otherJob(store, process string) string {
	return fmt.Sprintf("it belongs to %s, and this process to %s, as %s says: start it with the name of its own job, or send it to another store",
		jobName(store), jobName(process), environ.JobName.Name)
}

func jobName(job string) string {
	if job == "" {
		return "a job without a name"
	}
	return "the job " + strconv.QuoteToGraphic(job[:min(len(job), 64)])
}

// checkKey says what is wrong with a key or the size of its value.
func checkKey(ctx context.Context, key string, value int) error {
	switch {
	case ctx == nil:
		return noContext(ctx)
	case key == "" || len(key) > MaxKey:
		return fault(Argument, "a key of %d bytes; a store takes from 1 to %d", len(key), MaxKey)
	case value > MaxStored:
		return fault(Argument, "a value of %d bytes for %s; a store takes at most %d", value, key, MaxStored)
	}
	return nil
}

// waitAll is Wait by one Get after the other.
func waitAll(ctx context.Context, s Store, keys []string) error {
	for _, k := range keys {
		if _, err := s.Get(ctx, k); err != nil {
			return err
		}
	}
	return nil
}
