package ccl

import (
	"errors"
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/goccl/goccl/internal/engine"
)

// Hints tune the library that carries out a Comm's calls: NCCL or RCCL. The doc of each field names
// the corresponding field of ncclConfig_t. A field that is zero is left to the library. The
// library's own variables, such as NCCL_MIN_CTAS, override the others. A hint that the library or
// its version does not take is refused with ErrUnsupported when the Comm is made. From NCCL 2.27 on
// the library also gets the Comm's name (commName).
//
// There is no splitShare. Communicators that share resources share the flag that aborts them: when
// one of them fails, the kernels of the others end too, and their streams pass with undefined data
// and no error. Each Comm of a Split has its own resources, so a Comm that fails leaves the others
// intact.
type Hints struct {
	// MinCTAs is the least number of thread blocks that the kernel of a call takes (minCTAs, NCCL
	// 2.17).
	MinCTAs int
	// MaxCTAs is the largest number of thread blocks. A small number leaves more of the device to
	// compute and slows the call down (maxCTAs, NCCL 2.17).
	MaxCTAs int
	// CTAPolicy says what the library saves (CTAPolicy, NCCL 2.27).
	CTAPolicy CTAPolicy
	// TrafficClass marks network packets for the quality of service (trafficClass, NCCL 2.26).
	TrafficClass int
	// Net names the network plugin: "IB", "Socket", "AWS Libfabric" (netName, NCCL 2.17).
	Net string
	// LaunchOrder has the calls of all Comms on a device that have this hint run in the order in
	// which the program issues them. Without it, two ranks that issue calls of two Comms on two
	// streams may wait for each other (launchOrderImplicit, NCCL 2.31; from 2.26 on
	// NCCL_LAUNCH_ORDER_IMPLICIT=1 does the same for all Comms). One goroutine at a time issues
	// calls of such Comms on a device: the library refuses calls that race, unless
	// NCCL_LAUNCH_RACE_FATAL=0. The Comms of package mesh have the hint where the library takes it.
	LaunchOrder bool
}

// CTAPolicy says how a library chooses the number of thread blocks of a call.
type CTAPolicy uint8

const (
	CTAPolicyDefault    CTAPolicy = iota // for speed
	CTAPolicyEfficiency                  // as few as reach most of the speed; NCCL 2.27
	CTAPolicyZero                        // none, where the device's copy engines can do the call; NCCL 2.28
)

var ctaPolicies = [...]string{"default", "efficiency", "zero"}

// String returns the policy as [ParseHints] reads it: default, efficiency or zero.
func (p CTAPolicy) String() string {
	if int(p) < len(ctaPolicies) {
		return ctaPolicies[p]
	}
	return "CTAPolicy(" + strconv.Itoa(int(p)) + ")"
}

// String returns the fields that are set, as [ParseHints] reads them, such as
// "max-ctas=8,net=Socket". It is "" if none is set.
func (h Hints) String() string {
	var set []string
	for _, f := range h.numbers() {
		if *f.n != 0 {
			set = append(set, f.name+"="+strconv.Itoa(*f.n))
		}
	}
	if h.CTAPolicy != 0 {
		set = append(set, "cta-policy="+h.CTAPolicy.String())
	}
	if h.LaunchOrder {
		set = append(set, "launch-order=1")
	}
	if h.Net != "" {
		set = append(set, "net="+h.Net)
	}
	return strings.Join(set, ",")
}

// number is a field of Hints, and its name in text.
type number struct {
	name string
	n    *int
}

func (h *Hints) numbers() []number {
	return []number{{"min-ctas", &h.MinCTAs}, {"max-ctas", &h.MaxCTAs}, {"traffic-class", &h.TrafficClass}}
}

// ParseHints parses a comma-separated list such as
// "min-ctas=4,max-ctas=16,cta-policy=efficiency,traffic-class=3,net=IB". It is meant for flags.
func ParseHints(s string) (h Hints, err error) {
	refuse := func(err error) (Hints, error) {
		return Hints{}, &Error{Code: ErrArgument, Op: "ParseHints", Rank: -1, Peer: -1, Err: err}
	}
	for _, part := range strings.Split(s, ",") {
		name, value, _ := strings.Cut(part, "=")
		if err := h.set(name, value); err != nil {
			return refuse(fmt.Errorf("%q: %w", part, err))
		}
	}
	if err := h.check(); err != nil {
		return refuse(err)
	}
	return h, nil
}

func (h *Hints) set(name, value string) error {
	for _, f := range h.numbers() {
		if f.name == name {
			n, err := strconv.Atoi(value)
			if err != nil {
				return fmt.Errorf("%s is a whole number", name)
			}
			*f.n = n
			return nil
		}
	}
	switch name {
	case "cta-policy":
		for i, p := range ctaPolicies {
			if p == value {
				h.CTAPolicy = CTAPolicy(i)
				return nil
			}
		}
		return fmt.Errorf("a policy is %s", strings.Join(ctaPolicies[:], ", "))
	case "launch-order":
		h.LaunchOrder = value == "1"
		if value != "0" && value != "1" {
			return errors.New("launch-order is 0 or 1")
		}
		return nil
	case "net":
		h.Net = value
		return nil
	}
	return errors.New("a hint is min-ctas=N, max-ctas=N, cta-policy=NAME, traffic-class=N, launch-order=1 or net=NAME")
}

// check says which value no library could take.
func (h *Hints) check() error {
	for _, f := range h.numbers() {
		if *f.n < 0 {
			return fmt.Errorf("%s is %d: it must not be negative", f.name, *f.n)
		}
	}
	switch {
	case h.MaxCTAs > 0 && h.MinCTAs > h.MaxCTAs:
		return fmt.Errorf("min-ctas is %d, more than max-ctas, %d", h.MinCTAs, h.MaxCTAs)
	case int(h.CTAPolicy) >= len(ctaPolicies):
		return fmt.Errorf("there is no %v", h.CTAPolicy)
	case strings.ContainsAny(h.Net, "\x00,"):
		return fmt.Errorf("net is %q: no network plugin has such a name", h.Net)
	}
	return nil
}

// takes is nil, or which of the hints lib, that of the backend of that name, has no use for; lib is
// nil for the CPU engine.
func (h Hints) takes(backend string, lib *engine.Library) error {
	if h == (Hints{}) {
		return nil
	}
	if lib != nil && lib.Hints != nil {
		if err := lib.Hints(h.engine()); err != nil {
			return unsupported{fmt.Errorf("Options.Hints: %w", err)}
		}
		return nil
	}
	return unsupported{fmt.Errorf("Options.Hints: the backend %s takes no hints, but is given %v", backend, h)}
}

// hash tells different hints apart, when ranks compare theirs.
func (h Hints) hash() uint64 {
	sum := fnv.New64a()
	sum.Write([]byte(h.String()))
	return sum.Sum64()
}

func (h Hints) engine() engine.Hints {
	return engine.Hints{MinCTAs: h.MinCTAs, MaxCTAs: h.MaxCTAs, CTAPolicy: int(h.CTAPolicy),
		TrafficClass: h.TrafficClass, Net: h.Net,
		LaunchOrder: h.LaunchOrder}
}
