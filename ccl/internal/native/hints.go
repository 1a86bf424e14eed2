//go:build (nccl || rccl) && cgo && linux

package native

// #include "native.h"
import "C"

import (
	"fmt"

	"github.com/goccl/goccl/internal/engine"
)

// Hints says which of h a library of this version lacks. It would not notice: it reads the
// beginning of the configuration that it knows (parseCommConfig, src/init.cc).
func (l *library) Hints(h engine.Hints) error {
	if h.LaunchOrder && !l.v.launchOrder {
		return fmt.Errorf("%s has no LaunchOrder", l.Version())
	}
	for _, f := range []struct {
		set   bool
		name  string
		since int
	}{
		{h.MinCTAs != 0, "MinCTAs", 21700},
		{h.MaxCTAs != 0, "MaxCTAs", 21700},
		{h.Net != "", "Net", 21700},
		{h.TrafficClass != 0, "TrafficClass", 22600},
		{h.CTAPolicy != 0, "CTAPolicy", 22700},
		{h.CTAPolicy == 2, "CTAPolicyZero", 22803},
		{h.LaunchOrder, "LaunchOrder", 23100},
	} {
		if f.set && (l.version < f.since || l.t.CommInitRankConfig == nil) {
			return fmt.Errorf("%s has no %s; that needs %s %s", l.Version(), f.name, l.v.title, version(f.since))
		}
	}
	return nil
}

// hintsOf are g's, in memory of C.
func hintsOf(g *engine.Group) C.gccl_hints {
	h := &g.Hints
	c := C.gccl_hints{minCTAs: C.int(h.MinCTAs), maxCTAs: C.int(h.MaxCTAs), CTAPolicy: C.int(h.CTAPolicy),
		trafficClass: C.int(h.TrafficClass)}
	if h.LaunchOrder {
		c.launchOrder = 1
	}
	if h.Net != "" {
		c.netName = C.CString(h.Net)
	}
	if g.Name != "" {
		c.commName = C.CString(g.Name)
	}
	return c
}
