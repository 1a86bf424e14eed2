package gpu

import (
	rt "github.com/goccl/goccl/internal/gpu"
	"github.com/goccl/goccl/internal/lent"
)

// Graph is work that was captured from a stream, to be launched as one, again and again.
type Graph[P Platform] struct {
	_    [0]P
	rt   *rt.Runtime
	lent *lent.Resource
	hear []rt.Launched // of launches
}

// BeginCapture makes s collect the work that is issued to it, instead of running it, until EndCapture. Another stream
// that waits for an event recorded on s takes part, and s must wait for it in turn before the end.
func (s *Stream[P]) BeginCapture() error {
	h, err := s.of().Use()
	if err != nil {
		return err
	}
	s.rt.CaptureBegins()
	if c := s.rt.Driver.BeginCapture(s.Device(), h); c != rt.Success {
		s.rt.CaptureEnds()
		return s.check(c, "StreamBeginCapture")
	}
	s.beginCapture()
	return nil
}

// EndCapture returns the work that s has collected. After an error in between there is none, and s
// is an ordinary stream again.
func (s *Stream[P]) EndCapture() (*Graph[P], error) {
	h, err := s.of().Use()
	if err != nil {
		return nil, err
	}
	dev := s.Device()
	g, c := s.rt.Driver.EndCapture(dev, h)
	hear := s.endCapture()
	if c != rt.Success {
		return nil, s.check(c, "StreamEndCapture")
	}
	r := lend(s.rt, dev, "graph", "GraphExecDestroy", g, rt.Driver.CloseGraph)
	return &Graph[P]{rt: s.rt, lent: r, hear: hear}, nil
}

// Capturing reports whether s is between BeginCapture and EndCapture.
func (s *Stream[P]) Capturing() (bool, error) {
	h, err := s.of().Use()
	if err != nil {
		return false, err
	}
	yes, c := s.rt.Driver.Capturing(s.Device(), h)
	return yes, s.check(c, "StreamIsCapturing")
}

// of is g's resource, nil if there is none.
func (g *Graph[P]) of() *lent.Resource {
	if g == nil {
		return nil
	}
	return g.lent
}

// Launch issues all work of g to s.
func (g *Graph[P]) Launch(s *Stream[P]) error {
	h, stream, err := lent.UseBoth(g.of(), s.of())
	if err != nil {
		return err
	}
	dev := g.lent.Dev
	if c := g.rt.Driver.Launch(dev, h, stream); c != rt.Success {
		return g.rt.Check(c, "GraphLaunch", dev)
	}
	for _, f := range g.hear {
		f(s)
	}
	return nil
}

// Close releases the graph. A launch in progress ends first.
func (g *Graph[P]) Close() error { return g.of().Close() }
