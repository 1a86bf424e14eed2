package mpi

import (
	"context"
	"fmt"

	"github.com/goccl/goccl/ccl"
)

// envelope is where a message comes from, and its tag.
type envelope struct{ from, tag int }

// send sends vals behind a header of tag and length: goccl has no tags, and its messages between
// two ranks arrive in the order they were sent.
func send[T number](cm *Comm, call string, to, tag int, vals []T) error {
	return cm.do(call, func(m *member) error {
		if tag < 0 {
			return fmt.Errorf("tag %d: tags are from 0", tag)
		}
		b := bytesOf(vals)
		if to == m.c.Rank() {
			m.keep(envelope{to, tag}, append([]byte{}, b...))
			return nil
		}
		ctx := context.Background()
		if err := ccl.Send(ctx, m.c, []int64{int64(tag), int64(len(b))}, to); err != nil || len(b) == 0 {
			return err
		}
		return ccl.Send(ctx, m.c, b, to)
	})
}

// recv waits for a message with that tag, and keeps those with others for later.
func recv[T number](cm *Comm, call string, from, tag int, vals []T) error {
	return cm.do(call, func(m *member) error {
		if tag < 0 {
			return fmt.Errorf("tag %d: tags are from 0", tag)
		}
		e, b := envelope{from, tag}, bytesOf(vals)
		for len(m.early[e]) == 0 {
			if from == m.c.Rank() {
				return fmt.Errorf("nothing with tag %d was sent to oneself", tag)
			}
			ctx := context.Background()
			var header [2]int64
			if err := ccl.Recv(ctx, m.c, header[:], from); err != nil {
				return err
			}
			sent, n := envelope{from, int(header[0])}, int(header[1])
			into := b
			if sent != e || n > len(b) {
				into = make([]byte, n)
			}
			if n > 0 {
				if err := ccl.Recv(ctx, m.c, into[:n], from); err != nil {
					return err
				}
			}
			if sent == e && n <= len(b) {
				return nil
			}
			m.keep(sent, into)
		}
		message := m.early[e][0]
		m.early[e] = m.early[e][1:]
		if len(message) > len(b) {
			return fmt.Errorf("message truncated: rank %d sent %d bytes with tag %d, and there is room for %d", from,
				len(message), tag, len(b))
		}
		copy(b, message)
		return nil
	})
}

// keep keeps a message until it is asked for.
func (m *member) keep(e envelope, message []byte) {
	if m.early == nil {
		m.early = map[envelope][][]byte{}
	}
	m.early[e] = append(m.early[e], message)
}
