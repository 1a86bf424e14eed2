package boot

import (
	"net/netip"
	"regexp"
	"strconv"
	"strings"

	"github.com/goccl/goccl/internal/plain"
)

// master is rank 0's host and port as two variables of a launcher for training give them.
type master struct{ hostVar, portVar, hostText, portText string }

func masterOf(v *vars, hostVar, portVar string) master {
	return master{hostVar, portVar, v.getenv(hostVar), v.getenv(portVar)}
}

// read returns what the variables say. What can be no host or no port is refused here: looking for it
// would take until the timeout.
func (m master) read() (host, port string, err error) {
	if host, err = m.host(); err != nil {
		return "", "", err
	}
	if n, err := strconv.Atoi(m.portText); err != nil || n < 1 || n > 65535 || strings.HasPrefix(m.portText, "+") {
		return "", "", fault(Argument, "%s=%s is not a port: rank 0's is a number from 1 to 65535, such as 29500",
			m.portVar, plain.Clip(m.portText))
	}
	return host, m.portText, nil
}

// host returns the host that the variable names, an IPv6 address without its brackets.
func (m master) host() (string, error) {
	host := m.hostText
	if inner, ok := strings.CutPrefix(host, "["); ok && strings.HasSuffix(inner, "]") {
		if a, err := netip.ParseAddr(inner[:len(inner)-1]); err == nil && a.Is6() {
			host = inner[:len(inner)-1]
		}
	}
	if !isHost(host) {
		return "", fault(Argument, "%s=%s is not a host: rank 0's is a name or an address, such as c1, 10.0.0.1 or fd00::1, without a port", m.hostVar, plain.Clip(m.hostText))
	}
	return host, nil
}

// named is a name that a host may have, of hostMost characters at most.
var named = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)

const hostMost = 253

// isHost reports whether s may be the name or the address of a host.
func isHost(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil || len(s) <= hostMost && named.MatchString(s)
}
