package join

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"strings"

	"github.com/goccl/goccl/ccl/internal/call"
	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/internal/plain"
)

// process tells the processes of a job apart.
var process = func() (t [16]byte) {
	rand.Read(t[:])
	return t
}()

// hello is what ranks tell each other first:
//
//	8 bytes magic | 8 hash of version and options | 16 seed of the job's id |
//	16 host | 16 process | the version and options, to name the one that differs
const (
	helloMagic = "goccl\x00\x00\x01"
	helloHead  = 8 + 8 + 16 + 16 + 16
)

type hello []byte

func (h hello) valid() bool      { return len(h) >= helloHead && string(h[:8]) == helloMagic }
func (h hello) options() []byte  { return h[8:16] }
func (h hello) seed() []byte     { return h[16:32] }
func (h hello) host() [16]byte   { return [16]byte(h[32:48]) }
func (h hello) process() []byte  { return h[48:64] }
func (h hello) settings() string { return string(h[helloHead:]) }

func newHello(settings, hostID string) hello {
	h := make(hello, 0, helloHead+len(settings))
	h = append(h, helloMagic...)
	sum := sha256.Sum256([]byte(settings))
	h = append(h, sum[:8]...)
	var seed [16]byte
	rand.Read(seed[:])
	h = append(h, seed[:]...)
	if hostID == "" {
		hostID = shm.HostIdentity()
	} else {
		hostID = "named " + hostID
	}
	key := sha256.Sum256([]byte(hostID))
	if !shm.CanShare {
		key = sha256.Sum256(process[:])
		if strings.HasPrefix(hostID, "named ") {
			key = sha256.Sum256(append(process[:], hostID...))
		}
	}
	h = append(h, key[:16]...)
	h = append(h, process[:]...)
	return append(h, settings...)
}

// compare finds the rank whose version or options are not those of rank 0.
func compare(all [][]byte, size int) *call.Fault {
	if len(all) != size {
		return call.NewFault(call.Backend, -1, "the bootstrap gathered %d values from %d ranks", len(all), size)
	}
	for r, h := range all {
		if !hello(h).valid() {
			return call.NewFault(call.Version, r, "rank %d runs something else than this goccl, or another version of it", r)
		}
		if !bytes.Equal(hello(h).options(), hello(all[0]).options()) {
			return call.NewFault(call.Version, r, "rank %d differs from rank 0: %s", r, firstDifference(hello(all[0]).settings(), hello(h).settings()))
		}
	}
	return nil
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
