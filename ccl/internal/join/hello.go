package join

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/internal/plain"
	"github.com/goccl/goccl/internal/simhost"
)

// process tells the processes of a job apart.
var process = func() (t [16]byte) {
	rand.Read(t[:])
	return t
}()

// hello is what ranks tell each other first:
//
//	8 bytes magic | 8 hash of version and options | 16 host | 16 process | of rank 0: 16 seed of the job's id, 1 whether it founds a job in a store
//
// What ranks have in common comes first, which the bootstrap's table of all hellos has once: in a
// job of many hosts a rank adds its process alone. The options as text follow only where they
// differ: see differ.
const (
	helloMagic = "goccl\x00\x00\x03"
	helloBytes = 8 + 8 + 16 + 16
	seedBytes  = 16
	rootBytes  = seedBytes + 1
)

type hello []byte

// valid reports whether h is rank r's.
func (h hello) valid(r int) bool {
	n := helloBytes
	if r == 0 {
		n += rootBytes
	}
	return len(h) == n && string(h[:8]) == helloMagic
}

func (h hello) options() []byte { return h[8:16] }
func (h hello) host() [16]byte  { return [16]byte(h[16:32]) }
func (h hello) named() bool     { return h[31]&1 != 0 } // GOCCL_HOSTID says which host it is
func (h hello) process() []byte { return h[32:48] }
func (h hello) seed() []byte    { return h[helloBytes : helloBytes+seedBytes] }
func (h hello) founds() bool    { return h[helloBytes+seedBytes] != 0 }

// processOf is the process of h, which may be nil.
func processOf(h simhost.Host) [16]byte {
	if h == nil {
		return process
	}
	return h.ID()
}

// newHello is rank r's, of the process of h.
func newHello(h simhost.Host, settings, hostID string, r int, founds bool) hello {
	named := hostID != ""
	if named {
		hostID = "named " + hostID
	} else {
		hostID = shm.HostIdentity()
	}
	self := processOf(h)
	if h != nil && !named { // a host of its own
		hostID = string(self[:])
	}
	key := sha256.Sum256([]byte(hostID))
	if !shm.CanShare {
		key = sha256.Sum256(self[:])
		if named {
			key = sha256.Sum256(append(self[:], hostID...))
		}
	}
	if key[15] &^= 1; named || !shm.CanShare {
		key[15] |= 1
	}
	said := HelloOf(settings, [16]byte(key[:16]), self, r)
	if founds && r == 0 {
		said[helloBytes+seedBytes] = 1
	}
	return said
}

// HelloOf is the hello of rank r, which is in that process on that host.
func HelloOf(settings string, host, process [16]byte, r int) []byte {
	h := make([]byte, 0, helloBytes+rootBytes)
	h = append(h, helloMagic...)
	sum := sha256.Sum256([]byte(settings))
	h = append(h, sum[:8]...)
	h = append(h, host[:]...)
	h = append(h, process[:]...)
	if r == 0 {
		var seed [seedBytes]byte
		rand.Read(seed[:])
		h = append(append(h, seed[:]...), 0)
	}
	return h
}

// compare looks for a rank whose hello is that of another goccl, which is an error, and for the
// first one whose version or options are not those of rank 0: differs is that rank, or -1. All
// ranks find the same.
func compare(all [][]byte, size int) (differs int, f *call.Fault) {
	if len(all) != size {
		return -1, call.NewFault(call.Backend, -1, "the bootstrap gathered %d values from %d ranks", len(all), size)
	}
	differs = -1
	for r, h := range all {
		if !hello(h).valid(r) {
			return -1, call.NewFault(call.Version, r, "rank %d runs something else than this goccl, or another version of it", r)
		}
		if differs < 0 && !bytes.Equal(hello(h).options(), hello(all[0]).options()) {
			differs = r
		}
	}
	return differs, nil
}

// differ is the error for rank r, whose options are not those of rank 0. All ranks call it: those
// two say which they have.
func differ(ctx context.Context, b Bootstrap, r int, settings string) *call.Fault {
	var mine []byte
	if b.Rank() == 0 || b.Rank() == r {
		mine = []byte(settings)
	}
	said, err := b.AllGather(ctx, mine)
	switch {
	case err != nil:
		return call.NewFault(call.Version, r,
			"rank %d differs from rank 0 in its version or options, and in which was not learned: %w", r, err)
	case len(said) != b.Size():
		return call.NewFault(call.Backend, -1, "the bootstrap gathered %d values from %d ranks", len(said), b.Size())
	}
	return call.NewFault(call.Version, r, "rank %d differs from rank 0: %s", r,
		firstDifference(string(said[0]), string(said[r])))
}

func firstDifference(a, b string) string {
	x, y := strings.Split(a, ";"), strings.Split(b, ";")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return plain.Text(fmt.Sprintf("%s there, %s on rank 0", y[i], x[i]))
		}
	}
	return "a different number of options"
}
