package tcp

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/goccl/goccl/internal/environ"
	"github.com/goccl/goccl/internal/inet"
)

// Pick chooses the address of this host that the other hosts shall use.
//
// sel is the value of GOCCL_SOCKET_IFNAME, with the syntax of NCCL_SOCKET_IFNAME: a
// comma-separated list of prefixes of interface names; after a leading = they are
// whole names; after a leading ^ (before the =) the interfaces to leave out.
//
// Among the interfaces that sel allows (all, if it is empty) Pick prefers the one that
// routes to toward, if that is valid; then one that is neither loopback nor, as a
// bridge of containers is, out of other hosts' reach; then IPv4; then the one that this
// host has had for longest: what is made for containers and labs comes after its own, and
// may go while a job runs.
func Pick(sel string, toward netip.Addr) (addr netip.Addr, ifname string, err error) {
	ifs, err := interfaces()
	if err != nil {
		return netip.Addr{}, "", fmt.Errorf("tcp: cannot list the network interfaces: %w", err)
	}
	return pick(sel, toward, ifs, inet.Route)
}

// maxReachable is how many addresses Reachable lists.
const maxReachable = 8

// Reachable lists the addresses at which other hosts may reach this one, of interfaces that sel
// allows, in the order in which Pick prefers them.
func Reachable(sel string) []netip.Addr {
	ifs, err := interfaces()
	if err != nil {
		return nil
	}
	return reachable(sel, ifs)
}

func reachable(sel string, ifs []iface) (list []netip.Addr) {
	all, _ := choices(sel, ifs, netip.Addr{}, netip.Addr{}) // Pick says what is wrong with sel
	for _, c := range all {
		if c.addr.IsGlobalUnicast() && !slices.Contains(list, c.addr) {
			list = append(list, c.addr)
		}
	}
	return list[:min(len(list), maxReachable)]
}

// Toward is Pick where toward is to be reached: it is an error that this host has no way there.
func Toward(sel string, toward netip.Addr) (netip.Addr, error) {
	if _, err := inet.Route(toward); err != nil {
		return netip.Addr{}, err
	}
	addr, _, err := Pick(sel, toward)
	return addr, err
}

// iface is a network interface, as far as Pick cares.
type iface struct {
	name     string
	up       bool
	loopback bool
	addrs    []netip.Addr
}

func interfaces() ([]iface, error) {
	list, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	oldestFirst(list)
	ifs := make([]iface, len(list))
	for i, it := range list {
		ifs[i] = iface{name: it.Name, up: it.Flags&net.FlagUp != 0, loopback: it.Flags&net.FlagLoopback != 0}
		addrs, err := it.Addrs()
		if err != nil {
			continue // the interface has just gone, for one
		}
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if err != nil {
				continue
			}
			addr := p.Addr().Unmap()
			if addr.Is6() && addr.IsLinkLocalUnicast() {
				addr = addr.WithZone(it.Name)
			}
			ifs[i].addrs = append(ifs[i].addrs, addr)
		}
	}
	return ifs, nil
}

// oldestFirst orders interfaces by when this host came to have them. Linux lists them by their indices modulo 256.
func oldestFirst(list []net.Interface) {
	slices.SortFunc(list, func(a, b net.Interface) int { return a.Index - b.Index })
}

// ErrSelection is the error for a GOCCL_SOCKET_IFNAME that selects nothing.
var ErrSelection = errors.New(environ.SocketIfname.Name)

// pick is Pick on the interfaces ifs, with the kernel's routing table as a function.
func pick(sel string, toward netip.Addr, ifs []iface,
	route func(netip.Addr) (netip.Addr, error)) (netip.Addr, string, error) {
	var from netip.Addr
	if toward.IsValid() {
		from, _ = route(toward) // no route: any interface may be the one
	}
	all, err := choices(sel, ifs, from, toward)
	switch {
	case err != nil:
		return netip.Addr{}, "", fmt.Errorf("tcp: %w=%s: %w", ErrSelection, sel, err)
	case len(all) > 0:
		return all[0].addr, all[0].name, nil
	case sel == "":
		return netip.Addr{}, "", fmt.Errorf("tcp: no network interface is up and has an address, not even loopback; there are: %s", describe(ifs))
	}
	return netip.Addr{}, "", fmt.Errorf("tcp: %w=%s matches no interface that is up and has an address; there are: %s",
		ErrSelection, sel, describe(ifs))
}

// choice is an address that may be the one.
type choice struct {
	addr netip.Addr
	name string // of its interface
	cost int
}

// choices are the addresses of the interfaces that are up and that sel allows, the best first.
func choices(sel string, ifs []iface, from, toward netip.Addr) (all []choice, err error) {
	allows, err := parseSelection(sel)
	if err != nil {
		return nil, err
	}
	for _, it := range ifs {
		if !it.up || !allows(it.name) {
			continue
		}
		for _, a := range it.addrs {
			all = append(all, choice{a, it.name, preference(it, a, from, toward)})
		}
	}
	slices.SortStableFunc(all, func(a, b choice) int { return a.cost - b.cost })
	return all, nil
}

// preference orders addresses: less is better.
func preference(it iface, a, from, toward netip.Addr) int {
	if a.WithZone("") == from.WithZone("") && from.IsValid() {
		return 0
	}
	p := 1
	if a.Is4() != (!toward.IsValid() || toward.Unmap().Is4()) {
		p += 1 // a socket of one family does not reach the other
	}
	if a.Is6() && a.IsLinkLocalUnicast() {
		p += 4 // its zone means nothing to another host
	}
	switch {
	case it.loopback:
		p += 16
	case strings.HasPrefix(it.name, "docker"), strings.HasPrefix(it.name, "virbr"):
		p += 8
	}
	return p
}

// parseSelection returns the predicate on interface names that sel is.
func parseSelection(sel string) (func(name string) bool, error) {
	if sel == "" {
		return func(string) bool { return true }, nil
	}
	list, exclude := strings.CutPrefix(strings.TrimSpace(sel), "^")
	list, exact := strings.CutPrefix(list, "=")
	names := strings.Split(list, ",")
	for i, name := range names {
		name = strings.TrimSpace(name)
		switch {
		case name == "":
			return nil, errors.New("a name is missing; write eth,ib or =eth0 or ^docker,lo")
		case strings.ContainsAny(name, "^="):
			return nil, fmt.Errorf("%q: ^ and = are allowed only before the whole list, as ^=, ^ or =", name)
		}
		names[i] = name
	}
	return func(name string) bool {
		matches := slices.ContainsFunc(names, func(n string) bool {
			return n == name || !exact && strings.HasPrefix(name, n)
		})
		return matches != exclude
	}, nil
}

// describe lists interfaces with their addresses.
func describe(ifs []iface) string {
	if len(ifs) == 0 {
		return "none"
	}
	var all []string
	for _, it := range ifs {
		var notes []string
		if !it.up {
			notes = append(notes, "down")
		}
		for _, a := range it.addrs {
			notes = append(notes, a.WithZone("").String())
		}
		if len(notes) == 0 {
			notes = append(notes, "no address")
		}
		all = append(all, fmt.Sprintf("%s (%s)", it.name, strings.Join(notes, " ")))
	}
	return strings.Join(all, ", ")
}
