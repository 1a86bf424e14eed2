package plane

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/goccl/goccl/ccl/internal/shm"
	"github.com/goccl/goccl/internal/auth"
)

// A door is an abstract unix socket at which the maker of a host's memory hands it to the host's other processes, while
// they join. Anybody on the host can find it and knock. A knock of another user is turned away as it comes; one of this
// user has to prove that it belongs to the job, on a goroutine of its own. So a stranger gets nothing, and holds up nobody.
//
//	knocks   rank 4, little-endian | proof 32
//	hears    proof 32, with the memfd
//	parts    partClose or partKeep 1
type door struct {
	s       *Site
	fd      int // of the memory
	key     []byte
	l       *net.UnixListener
	ctx     context.Context // ends when the door is shut
	stop    context.CancelFunc
	givenUp context.Context // ends when the memory is given up: a process that has it does not part any more
	drop    context.CancelFunc
}

const (
	proofBytes = sha256.Size
	knockBytes = 4 + proofBytes
	knockTime  = 5 * time.Second // for one that knocks to say all it has to say
	// A process notes the end of another by the end of their connection only where the kernel raises no flag for one of
	// the two: see package proc. So a process of many ranks on a host needs no descriptor for each.
	partClose = 'c'
	partKeep  = 'k'
)

// proof shows that its maker knows key, in a role.
func proof(key []byte, role string, rank uint32) []byte {
	m := hmac.New(sha256.New, key)
	fmt.Fprintf(m, "%s %d", role, rank)
	return m.Sum(nil)
}

func doorName(key []byte) string { return "goccl-" + hex.EncodeToString(proof(key, "door", 0)[:16]) }

// openDoor opens the door to this host's memory.
func (s *Site) openDoor(key []byte) (*door, error) {
	l, err := shm.Listen(doorName(key))
	if err != nil {
		return nil, shareError(err)
	}
	d := &door{s: s, fd: s.Host.Descriptor(), key: key, l: l}
	d.ctx, d.stop = context.WithCancel(context.Background())
	d.givenUp, d.drop = context.WithCancel(context.Background())
	s.Attending.Go(d.watch)
	return d, nil
}

// shut ends what openDoor began. Processes that have the memory already part in peace.
func (d *door) shut() {
	d.stop()
	d.l.Close()
}

// watch answers those that knock, until the door is shut.
func (d *door) watch() {
	for {
		c, err := d.l.AcceptUnix()
		switch {
		case err == nil && shm.SameUser(c) == nil:
			d.s.Attending.Go(func() { d.answer(c) })
		case err == nil:
			c.Close()
		case d.ctx.Err() != nil:
			return
		default: // out of descriptors, say: those that are being answered give theirs back
			time.Sleep(5 * time.Millisecond)
		}
	}
}

// answer gives the memory to the process at the other end of c, if that belongs to the job.
func (d *door) answer(c *net.UnixConn) {
	unguard := context.AfterFunc(d.ctx, func() { c.Close() })
	defer unguard()
	c.SetDeadline(time.Now().Add(knockTime))
	var b [knockBytes]byte
	if _, err := io.ReadFull(c, b[:]); err != nil {
		c.Close()
		return
	}
	rank := binary.LittleEndian.Uint32(b[:])
	if !hmac.Equal(b[4:], proof(d.key, "knocks", rank)) || !unguard() ||
		shm.SendFD(c, d.fd, proof(d.key, "answers", rank)) != nil {
		c.Close()
		return
	}
	defer context.AfterFunc(d.givenUp, func() { c.Close() })()
	if err := auth.Await(c, b[:1], max(knockTime, d.s.peer)); err != nil || b[0] != partKeep { // it is of the job, and may be slow
		c.Close() // if it has died just now, it has not joined, as the bootstrap says
		return
	}
	d.s.watch(c, int(rank), d)
}

// knock takes the memory from the host's maker, which has opened its door before: if it is not there, it is on another host.
func (s *Site) knock(ctx context.Context, key []byte) (*shm.Host, *net.UnixConn, error) {
	fd, c, err := s.recvHost(ctx, key)
	if err != nil {
		return nil, nil, shareError(err)
	}
	h, err := shm.Open(fd)
	if err != nil {
		c.Close()
		return nil, nil, shareError(err)
	}
	return h, c, nil
}

func (s *Site) recvHost(ctx context.Context, key []byte) (int, *net.UnixConn, error) {
	until := shareDeadline(ctx)
	rank := uint32(s.Mine)
	c, err := dialHost(ctx, doorName(key), until)
	if err != nil {
		return -1, nil, err
	}
	defer context.AfterFunc(ctx, func() { c.SetDeadline(time.Unix(1, 0)) })()
	if err = shm.SameUser(c); err == nil {
		c.SetDeadline(until)
		_, err = c.Write(append(binary.LittleEndian.AppendUint32(nil, rank), proof(key, "knocks", rank)...))
	}
	if err == nil {
		var fd int
		if fd, err = shm.RecvFD(c, proof(key, "answers", rank)); err == nil {
			return fd, c, nil
		}
	}
	c.Close()
	return -1, nil, err
}

// dialHost connects with a door. One that too many have come to at once is tried again.
func dialHost(ctx context.Context, name string, until time.Time) (*net.UnixConn, error) {
	for {
		c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: "@" + name, Net: "unix"})
		if err == nil || !errors.Is(err, syscall.EAGAIN) || ctx.Err() != nil || time.Now().After(until) {
			return c, err
		}
		time.Sleep(time.Millisecond)
	}
}

// partAtDoor tells the maker of the memory, at the other end of c, whether the two need to hear of each other's end by c.
func (s *Site) partAtDoor(c *net.UnixConn) {
	s.mu.Lock()
	bearers := s.pulse.death.Load() != 0 && s.pulses[0].death.Load() != 0 // the maker has the host's first rank
	s.mu.Unlock()
	if bearers {
		c.Write([]byte{partClose})
		c.Close()
		return
	}
	c.SetDeadline(time.Time{})
	c.Write([]byte{partKeep}) // if this fails, the end of c follows
	s.watch(c, s.Topo.Rank(s.Node, 0), nil)
}

// shareDeadline is when to give up sharing: before ctx ends, so that there is time left to go on without.
func shareDeadline(ctx context.Context) time.Time {
	limit := time.Now().Add(time.Minute)
	if d, ok := ctx.Deadline(); ok {
		if half := time.Now().Add(time.Until(d) / 2); half.Before(limit) {
			return half
		}
	}
	return limit
}

// shareError is an error of shared memory as one that the job can go on without sharing, where that helps: a machine or a
// process that is at its limits has not enough for that either.
func shareError(err error) error {
	for _, e := range []error{syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM, syscall.ENOSPC} {
		if errors.Is(err, e) {
			return err
		}
	}
	return fmt.Errorf("%w: %w", errCannotShare, err)
}
