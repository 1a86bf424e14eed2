package auth

import (
	"errors"
	"io"
	"net"
	"os"
	"time"
)

// awaits is in how many parts Await divides its limit.
const awaits = 5

// Await fills b from conn, whose other end has proved itself and takes the connection as made once
// it has sent b. It gives up after limit, but a pause of this process, however long, counts as a
// fifth of that: what has come meanwhile is read. It leaves conn without a deadline if it returns
// nil.
func Await(conn net.Conn, b []byte, limit time.Duration) error {
	var err error
	for range awaits {
		conn.SetDeadline(time.Now().Add(limit / awaits))
		var n int
		n, err = io.ReadFull(conn, b)
		if err == nil {
			return conn.SetDeadline(time.Time{})
		}
		if !errors.Is(err, os.ErrDeadlineExceeded) {
			return err
		}
		b = b[n:]
	}
	return err
}
