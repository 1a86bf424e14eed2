package boot

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strings"

	"github.com/goccl/goccl/internal/environ"
	"github.com/goccl/goccl/internal/plain"
)

// apinfo is what PALS writes about an application to the file PALS_APINFO.
type apinfo struct {
	hosts []string // by node
	nodes []int    // by rank
}

// Offsets in PALS' header (libpals version 5): the tables of ranks and of nodes,
// each an entry size, an offset and a count.
const (
	apRankSize, apRankAt, apRanks = 64, 72, 80
	apNodeSize, apNodeAt, apNodes = 88, 96, 104
	apHeader                      = apNodes + 4

	apRankNode = 8 // in a rank's entry: {rank in its node, command, node}, int32 each
	apNodeName = 4 // in a node's: {int32, char[64]}
	apNameLen  = 64
	maxRanks   = 1 << 24
)

// parseAPInfo reads the file, believing nothing it says about itself.
func parseAPInfo(b []byte) (*apinfo, error) {
	if len(b) < apHeader {
		return nil, fault(Argument, "%d bytes are too few for a header", len(b))
	}
	rank, ok1 := table(b, apRankSize, apRankAt, apRanks, apRankNode+4)
	node, ok2 := table(b, apNodeSize, apNodeAt, apNodes, apNodeName+apNameLen)
	if !ok1 || !ok2 {
		return nil, fault(Argument, "its tables do not lie within it; is this another version of PALS?")
	}
	a := &apinfo{}
	for _, e := range node {
		name, _, ended := bytes.Cut(e[apNodeName:apNodeName+apNameLen], []byte{0})
		if !ended || len(name) == 0 || bytes.ContainsFunc(name, func(r rune) bool { return r <= ' ' || r > '~' }) {
			return nil, fault(Argument, "it has an invalid host name: %s", plain.Clip(string(name)))
		}
		a.hosts = append(a.hosts, string(name))
	}
	for r, e := range rank {
		n := int(int32(binary.NativeEndian.Uint32(e[apRankNode:])))
		if n < 0 || n >= len(a.hosts) {
			return nil, fault(Argument, "it puts rank %d on host %d of %d", r, n, len(a.hosts))
		}
		a.nodes = append(a.nodes, n)
	}
	return a, nil
}

// table returns the entries of a table, if they lie within b and have need bytes.
func table(b []byte, sizeAt, at, countAt, need int) ([][]byte, bool) {
	size, from := binary.NativeEndian.Uint64(b[sizeAt:]), binary.NativeEndian.Uint64(b[at:])
	count := binary.NativeEndian.Uint32(b[countAt:])
	if size < uint64(need) || size > 1<<16 || count < 1 || count > maxRanks ||
		from > uint64(len(b)) || uint64(count)*size > uint64(len(b))-from {
		return nil, false
	}
	return slices.Collect(slices.Chunk(b[from:from+uint64(count)*size], int(size))), true
}

// nodefile is the list of hosts of a PBS job. PBS_JOBID alone does not mean PBS:
// a plugin of Slurm sets it, too.
func (v *vars) nodefile() []string {
	path := v.getenv("PBS_NODEFILE")
	if path == "" || v.has("SLURM_JOB_ID") {
		return nil
	}
	text, err := v.readFile(path)
	if err != nil {
		return nil
	}
	var hosts []string
	seen := map[string]bool{} // a host may be listed once for each of its slots
	for h := range strings.FieldsSeq(string(text)) {
		if !seen[h] {
			seen[h] = true
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// apinfo reads PALS' file, if it can.
func (v *vars) apinfo() (*apinfo, error) {
	b, err := v.readFile(v.getenv("PALS_APINFO"))
	if err != nil {
		return nil, err
	}
	return parseAPInfo(b)
}

// readPALS reads the variables of PALS. There is none for the size, but what Cray's PMI
// sets beside them; else the file has it; else the hosts of the PBS job have, if
// the application uses all of them alike.
func readPALS(v *vars) Launch {
	l := Launch{
		Rank: v.maybe("PALS_RANKID"), Size: -1,
		Local: v.maybe("PALS_LOCAL_RANKID"), Locals: v.maybe("PALS_LOCAL_SIZE"),
		Node: v.maybe("PALS_NODEID"), Nodes: -1,
		Job: v.getenv("PALS_APID"),
	}
	a, err := v.apinfo()
	hosts := v.nodefile()
	switch {
	case err == nil:
		l.Nodes = len(a.hosts)
	case len(hosts) > l.Node && l.Node*l.Locals+l.Local == l.Rank:
		l.Nodes = len(hosts)
	}
	switch own := v.maybe(environ.Size.Name); {
	case own > 0:
		l.Size = own
	case v.getenv("PMI_RANK") == v.getenv("PALS_RANKID") && v.has("PMI_SIZE"):
		l.Size = v.maybe("PMI_SIZE")
	case err == nil:
		l.Size = len(a.nodes)
	case l.Nodes > 0 && l.Locals > 0:
		l.Size = l.Nodes * l.Locals
	default:
		v.fail("PALS started this process, but the number of ranks is unknown: no PMI_SIZE, PALS_APINFO=%s: %v; set GOCCL_SIZE, or use mpiexec --pmi cray",
			v.getenv("PALS_APINFO"), err)
	}
	return l
}

// palsHosts are names of rank 0's host, and where each rank was put, if the file says.
func palsHosts(v *vars) (hosts []string, where func(int) string) {
	a, err := v.apinfo()
	listed := v.nodefile()
	if err != nil {
		return listed[:min(len(listed), 1)], nil
	}
	host := a.hosts[a.nodes[0]]
	hosts = []string{host}
	// The node file may know the same host by its name on the fast network.
	for _, h := range listed {
		if short, _, _ := strings.Cut(h, "."); short == host && h != host {
			hosts = append(hosts, h)
			break
		}
	}
	return hosts, func(r int) string {
		if r >= len(a.nodes) {
			return ""
		}
		return a.hosts[a.nodes[r]] + " (PALS)"
	}
}
