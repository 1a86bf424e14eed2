//go:build !unix

package boot

import "net"

// privatePlaces are none: ranks meet at no Unix sockets here.
type privatePlaces struct {
	name   string
	getenv func(string) string
}

func (privatePlaces) paths() []string      { return nil }
func (privatePlaces) listen() net.Listener { return nil }

// storeDirs and the others trust the directory: its access list says who may write there.
func storeDirs(dir string) []string           { return []string{dir} }
func makeStoreDir(dir string) (string, error) { return dir, nil }
func oneStoreDir(dir string) (string, error)  { return dir, nil }
