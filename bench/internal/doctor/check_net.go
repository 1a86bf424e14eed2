package doctor

import (
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/goccl/goccl/bench/internal/prose"
)

// names looks at what the hosts are called: libraries that look their own name up
// and get a loopback address wait for ever where there are several hosts.
func (e *exam) names() {
	leaders := e.leaders()
	seen := map[string]bool{}
	for _, f := range leaders {
		if seen[f.Host] {
			e.say("names", warning, "give each host a name of its own",
				"two hosts are called %s: messages cannot tell them apart", f.Host)
			return
		}
		seen[f.Host] = true
	}
	if len(leaders) < 2 {
		return
	}
	for _, f := range leaders {
		for _, a := range f.Resolves {
			if ip := net.ParseIP(a); ip != nil && ip.IsLoopback() {
				e.say("names", warning, "in /etc/hosts there, map the name to the host's address",
					"%s resolves its own name to %s: MPI and Gloo may then wait for others there", f.Host, a)
				return
			}
		}
	}
	e.say("names", ok, "", "each host has its own")
}

// named looks for interfaces that variables name and hosts lack.
func (e *exam) named() {
	for _, f := range e.leaders() {
		for _, name := range slices.Sorted(maps.Keys(f.Wanted)) {
			e.say("interfaces", failure, "name one of these: "+ifaceNames(f), "%s: %s names %s, which is not there or not up",
				f.Host, name, strings.Join(f.Wanted[name], ", "))
			return
		}
	}
	e.alike("interfaces", warning, "hosts whose networks have other names need GOCCL_SOCKET_IFNAME and the like by prefixes that fit all", e.leaders(), ifaceNames)
}

func ifaceNames(f *facts) string {
	return strings.Join(prose.Names(f.Interfaces, func(i iface) string { return i.Name }), " ")
}

// network tells which hosts reach which. A pair needs one address that works each way.
func (e *exam) network() {
	if len(e.leaders()) < 2 {
		return
	}
	type pair struct{ from, to string }
	good, bad, dead := map[pair]bool{}, map[pair]route{}, 0 // attempts
	for _, r := range e.routes {
		p := pair{r.From, r.To}
		if r.Error == "" {
			good[p] = true
			continue
		}
		if dead++; bad[p].Error == "" {
			bad[p] = r
		}
	}
	pairs := slices.SortedFunc(maps.Keys(bad),
		func(a, b pair) int { return strings.Compare(a.from+" "+a.to, b.from+" "+b.to) })
	lost, told := 0, 0
	for _, p := range pairs {
		if good[p] {
			continue
		}
		lost++
		if told++; told <= 5 {
			r := bad[p]
			oneWay := ""
			if good[pair{p.to, p.from}] {
				oneWay = ", though the other way works"
			}
			e.say("routes", failure, "look at the firewall and the routes between them (ip route get "+r.Addr+")",
				"%s does not reach %s at %s: %s%s", p.from, p.to, r.Addr, r.Error, oneWay)
		}
	}
	if lost > told {
		e.say("routes", failure, "", "and %d more pairs of hosts", lost-told)
	}
	if lost == 0 {
		text := fmt.Sprintf("%d pairs of hosts reach each other, both ways", len(good)/2)
		if dead > 0 {
			e.say("routes", warning, "choose the interfaces that all hosts share with GOCCL_SOCKET_IFNAME (and NCCL_SOCKET_IFNAME)", "%s, but not at every address: %d attempts failed", text, dead)
			return
		}
		e.say("routes", ok, "", "%s", text)
	}
}
