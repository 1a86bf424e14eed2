package boot

import (
	"context"
	"os"
	"path/filepath"
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
// directory that all processes share, /dir. The secret is the job's, nil if it has none. It asks the
// store nothing yet.
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
	secret, err := auth.FromEnv(os.Getenv)
	if err != nil {
		return nil, fault(Argument, "the job's secret is refused: %v", err)
	}
	s, err := OpenStore(place, secret)
	if err != nil {
		return nil, fault(Argument, "%s=%s: %v", environ.Hall.Name, place, err)
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
