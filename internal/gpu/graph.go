package gpu

// Graph is work that was captured from a stream, to be launched as one, again and again.
type Graph struct {
	*resource
	hear []launched // of launches
}

// BeginCapture makes s collect the work that is issued to it, instead of running it, until EndCapture. Another stream
// that waits for an event recorded on s takes part, and s must wait for it in turn before the end.
func (s *Stream) BeginCapture() error {
	h, err := s.use()
	if err != nil {
		return err
	}
	s.rt.begins.Lock()
	s.rt.capturing.Add(1) // before it begins: nobody is to ask for an event then
	s.rt.begins.Unlock()
	c := s.rt.drv.beginCapture(s.dev, h)
	if c != success {
		s.rt.capturing.Add(-1)
		return s.rt.check(c, "StreamBeginCapture", s.dev)
	}
	s.beginCapture()
	return nil
}

// EndCapture returns the work that s has collected. After an error in between there is none, and s is an ordinary stream
// again.
func (s *Stream) EndCapture() (*Graph, error) {
	h, err := s.use()
	if err != nil {
		return nil, err
	}
	g, c := s.rt.drv.endCapture(s.dev, h)
	hear := s.endCapture()
	if c != success {
		return nil, s.rt.check(c, "StreamEndCapture", s.dev)
	}
	return &Graph{newResource(s.rt, s.dev, "graph", "GraphExecDestroy", g), hear}, nil
}

// Capturing reports whether s is between BeginCapture and EndCapture.
func (s *Stream) Capturing() (bool, error) {
	h, err := s.use()
	if err != nil {
		return false, err
	}
	yes, c := s.rt.drv.capturing(s.dev, h)
	return yes, s.rt.check(c, "StreamIsCapturing", s.dev)
}

// Launch issues all work of g to s.
func (g *Graph) Launch(s *Stream) error {
	if g == nil {
		return errNil
	}
	h, err := g.use()
	if err != nil {
		return err
	}
	stream, err := s.use()
	if err != nil {
		return err
	}
	if err := g.same(s.resource); err != nil {
		return err
	}
	if c := g.rt.drv.launch(g.dev, h, stream); c != success {
		return g.rt.check(c, "GraphLaunch", g.dev)
	}
	for _, f := range g.hear {
		f(s)
	}
	return nil
}

// Close releases the graph. A launch in progress ends first.
func (g *Graph) Close() error {
	if g == nil {
		return errNil
	}
	return g.close(func(h uintptr) code { return g.rt.drv.closeGraph(g.dev, h) })
}
