package boot

import (
	"bufio"
	"context"
	"encoding/base64"
	"fmt"
	"net"
	"strconv"
	"strings"
	"time"

	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/plain"
)

// pmi speaks PMI-1, the lines of text that MPICH's process managers (Hydra, Intel
// MPI's, Slurm's pmi2 plugin) understand on the socket PMI_FD:
//
//	cmd=get kvsname=kvs_1 key=goccl.0
//	cmd=get_result rc=0 msg=success value=...
type pmi struct {
	conn net.Conn
	in   *bufio.Reader
	kvs  string // the name of the job's key-value space
	most int    // bytes in a value
}

const (
	maxPMILine = 64 << 10
	pmiParts   = 64 // of a value that is too long for one
)

// startPMI says hello to the process manager.
func startPMI(conn net.Conn) (*pmi, error) {
	p := &pmi{conn: conn, in: bufio.NewReaderSize(conn, maxPMILine)}
	if _, err := p.call("init pmi_version=1 pmi_subversion=1"); err != nil {
		return nil, err
	}
	maxes, err := p.call("get_maxes")
	if err != nil {
		return nil, err
	}
	if p.most, err = strconv.Atoi(maxes["vallen_max"]); err != nil || p.most < 64 {
		return nil, fault(System, "the process manager takes values of at most %s bytes", plain.Clip(maxes["vallen_max"]))
	}
	p.most = min(p.most, maxPMILine) - 16 // a zero byte, and the number of parts
	kvs, err := p.call("get_my_kvsname")
	if err != nil {
		return nil, err
	}
	if p.kvs = kvs["kvsname"]; p.kvs == "" {
		return nil, fault(System, "the process manager gave no key-value space")
	}
	return p, nil
}

// call sends a command and returns the keys of the answer.
func (p *pmi) call(command string) (map[string]string, error) {
	name, _, _ := strings.Cut(command, " ")
	if _, err := p.conn.Write([]byte("cmd=" + command + "\n")); err != nil {
		return nil, fault(System, "the process manager does not take %s: %v", name, err)
	}
	line, err := p.in.ReadSlice('\n')
	if err != nil {
		return nil, fault(System, "the process manager does not answer %s: %v", name, err)
	}
	answer, err := parsePMI(string(line))
	if err != nil {
		return nil, fault(System, "the process manager's answer to %s is garbled: %s", name, plain.Clip(string(line)))
	}
	if rc := answer["rc"]; rc != "" && rc != "0" {
		return nil, fault(System, "the process manager refuses %s: %s", name, plain.Clip(strings.TrimSpace(string(line))))
	}
	return answer, nil
}

// parsePMI splits an answer into its keys. Only msg, which comes last, may hold spaces.
func parsePMI(line string) (map[string]string, error) {
	answer := map[string]string{}
	for f := range strings.FieldsSeq(line) {
		if k, v, ok := strings.Cut(f, "="); ok && k != "" {
			answer[k] = v
		}
	}
	if answer["cmd"] == "" {
		return nil, errFrame
	}
	return answer, nil
}

// put publishes value under key, in as many parts as it takes; the first says how many.
func (p *pmi) put(key string, value []byte) error {
	text := base64.RawURLEncoding.EncodeToString(value)
	parts := (len(text) + p.most - 1) / p.most
	if parts > pmiParts {
		return fault(System, "%d bytes are too many for the process manager", len(text))
	}
	for i := range parts {
		part := text[i*p.most : min((i+1)*p.most, len(text))]
		if i == 0 {
			part = fmt.Sprintf("%d.%s", parts, part)
		}
		if _, err := p.call(fmt.Sprintf("put kvsname=%s key=%s.%d value=%s", p.kvs, key, i, part)); err != nil {
			return err
		}
	}
	return nil
}

// get returns what put has published, on any rank, after a barrier.
func (p *pmi) get(key string) ([]byte, error) {
	var text strings.Builder
	for i, parts := 0, 1; i < parts; i++ {
		answer, err := p.call(fmt.Sprintf("get kvsname=%s key=%s.%d", p.kvs, key, i))
		if err != nil {
			return nil, err
		}
		part := answer["value"]
		if i == 0 {
			count, rest, _ := strings.Cut(part, ".")
			if parts, err = strconv.Atoi(count); err != nil || parts < 1 || parts > pmiParts {
				return nil, fault(System, "the process manager returned a garbled value: %s", plain.Clip(part))
			}
			part = rest
		}
		text.WriteString(part)
	}
	value, err := base64.RawURLEncoding.DecodeString(text.String())
	if err != nil {
		return nil, fault(System, "the process manager returned a garbled value: %v", err)
	}
	return value, nil
}

// overPMI makes the place that rank 0 publishes over PMI the place to meet. Only
// rank 0's address goes that way: gets cost O(n) for each rank.
func (m *joinConfig) overPMI(ctx context.Context, fd string, l Launch) error {
	n, err := strconv.Atoi(fd)
	if err != nil {
		return fault(Argument, "PMI_FD=%s is not a file descriptor", plain.Clip(fd))
	}
	conn, err := inheritedConn(n)
	if err != nil {
		return fault(System, "PMI_FD=%s is not the process manager's socket (did a wrapper close it?): %v; set GOCCL_ROOT=host:port for all ranks", fd, err)
	}
	defer conn.Close()
	return m.throughPMI(ctx, conn, l.Nodes == 1)
}

func (m *joinConfig) throughPMI(ctx context.Context, conn net.Conn, oneHost bool) (err error) {
	ctx, cancel := limited(ctx, m.limit)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	var listener net.Listener
	defer func() {
		if err == nil {
			return
		}
		if listener != nil {
			listener.Close()
		}
		if ctx.Err() != nil {
			err = ended(ctx.Err(), "the context ended while the ranks met through the process manager")
		}
	}()
	p, err := startPMI(conn)
	if err != nil {
		return err
	}
	var failed error
	if m.rank == 0 {
		var n rootAddr
		if listener, n, failed = m.announceAt(ctx, oneHost); failed != nil {
			n.Failed = failed.Error() // and tell the others, who wait at the barrier
		}
		if err := p.put("goccl", n.encode()); err != nil {
			return err
		}
	}
	if _, err := p.call("barrier_in"); err != nil {
		return err
	}
	value, err := p.get("goccl")
	if err != nil {
		return err
	}
	if _, err := p.call("finalize"); err != nil {
		return err
	}
	if failed != nil {
		return failed
	}
	n, err := parseRootAddr(value)
	if err != nil {
		return err
	}
	if m.secret.IsZero() {
		m.secret = auth.Given(n.Secret)
	}
	m.job = p.kvs
	m.host = hostSocket(m.job, strings.Join(n.Addrs, " "), m.hostID)
	m.find = func() (point, error) { return point{network: "tcp", addrs: n.Addrs, secret: m.secret}, nil }
	m.listen = func(context.Context) (net.Listener, auth.Secret, error) { return listener, m.secret, nil }
	return nil
}
