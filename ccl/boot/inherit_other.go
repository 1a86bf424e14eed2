//go:build !unix

package boot

import "net"

func inheritedListener(int) (net.Listener, error) { return nil, errNoInherit }

func inheritedConn(int) (net.Conn, error) { return nil, errNoInherit }
