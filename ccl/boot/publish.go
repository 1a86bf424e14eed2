package boot

import (
	"context"
	"encoding/json"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"

	"github.com/goccl/goccl/internal/auth"
	"github.com/goccl/goccl/internal/inet"
	"github.com/goccl/goccl/internal/plain"
	"github.com/goccl/goccl/internal/simhost"
)

// rootAddr is what rank 0 publishes, in a file or over PMI, where the other ranks cannot know its
// address: its addresses, and a secret for this job alone.
type rootAddr struct {
	Addrs  []string `json:"addrs,omitempty"`  // the likeliest first
	Secret []byte   `json:"secret,omitempty"` // nil if the ranks have one already
	Failed string   `json:"failed,omitempty"` // why rank 0 listens nowhere
}

func parseRootAddr(b []byte) (rootAddr, error) {
	var n rootAddr
	if err := plain.Unmarshal(b, &n); err != nil {
		return n, fault(System, "what rank 0 has published is garbled: %v", err)
	}
	if n.Failed != "" {
		return n, fault(System, "rank 0 failed: %s", n.Failed)
	}
	if len(n.Addrs) == 0 || len(n.Addrs) > maxAddrs {
		return n, fault(System, "what rank 0 has published has %d addresses", len(n.Addrs))
	}
	return n, nil
}

func (n rootAddr) encode() []byte {
	b, _ := json.Marshal(n) // strings and numbers always can
	return b
}

// maxAddrs is how many of its addresses rank 0 publishes.
const maxAddrs = 8

// announceAt listens at a port of the system's choice, and returns what to publish.
// If all ranks are on this host, nobody else needs to reach it.
func (m *joinConfig) announceAt(ctx context.Context, oneHost bool) (net.Listener, rootAddr, error) {
	on := ""
	if oneHost {
		on = loopback.String()
	}
	l, err := inet.ListenAt(simhost.Of(ctx), net.JoinHostPort(on, "0"))
	if err != nil {
		return nil, rootAddr{}, cannotListen(err, "rank 0 cannot listen")
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	var n rootAddr
	if m.secret.IsZero() {
		n.Secret = auth.NewSecret()
	}
	for _, a := range reachable(ctx, oneHost) {
		n.Addrs = append(n.Addrs, net.JoinHostPort(a.String(), port))
	}
	return l, n, nil
}

// reachable are the addresses at which others may reach this host: first the one its
// name has, which its keepers chose, then those of its interfaces.
func reachable(ctx context.Context, oneHost bool) []netip.Addr {
	if oneHost {
		return []netip.Addr{loopback}
	}
	ours := slices.DeleteFunc(inet.Ours(simhost.Of(ctx)), func(a netip.Addr) bool { return !a.IsGlobalUnicast() })
	var named []netip.Addr
	if host, err := os.Hostname(); err == nil && simhost.Of(ctx) == nil {
		addrs, _ := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		for _, a := range addrs {
			if a = a.Unmap(); slices.Contains(ours, a) {
				named = append(named, a)
			}
		}
	}
	// IPv4 first: where a host has both, it is the one more surely routed.
	slices.SortStableFunc(ours, func(a, b netip.Addr) int { return a.BitLen() - b.BitLen() })
	var all []netip.Addr
	for _, a := range append(named, ours...) {
		if !slices.Contains(all, a) && len(all) < maxAddrs {
			all = append(all, a)
		}
	}
	if all == nil {
		return []netip.Addr{loopback}
	}
	return all
}
