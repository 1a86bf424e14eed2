package main

import (
	"os"
	"path/filepath"
	"strconv"
)

// lab is the folder test/lab, once its hosts are up: test/lab/peers.sh says so.
var lab = os.Getenv("GOCCL_PEERS_LAB")

// onLab launches a program of two ranks on each of two hosts of the lab: memory inside a host, TCP between.
func onLab(name string, program func(b *builder) []string) peer {
	return peer{name: name, needs: []string{"openmpi", "lab"}, command: func(b *builder, ranks int) []string {
		return append([]string{filepath.Join(lab, "netlab.sh"), "exec", "1", "mpirun.openmpi", "--mca", "plm_rsh_agent",
			filepath.Join(lab, "netlab-rsh"),
			"--mca", "btl", "tcp,self,vader", "--mca", "btl_tcp_if_include", "10.77.0.0/16", "--mca", "mpi_yield_when_idle",
			"1", "--oversubscribe", "--bind-to", "none",
			"--host", "h1:2,h2:2", "-x", "GOCCL_ROOT=10.77.0.1:29555", "-np", strconv.Itoa(ranks)}, program(b)...)
	}}
}
