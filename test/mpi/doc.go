// Package mpi holds no code, only the tests of one binary under every MPI: `go test -tags mpi ./test/mpi`
// after fetch.sh, and lab.sh for two hosts.
package mpi
