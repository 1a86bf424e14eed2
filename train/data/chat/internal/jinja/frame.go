package jinja

import "github.com/goccl/goccl/train/data/chat/internal/python"

// frame is what is known of the names in the template, a macro or a body when it is compiled.
type frame struct {
	up    *frame
	seen  map[string]bool // those that are read or set
	first []string        // those that are set, and not read before that, nor set in an if alone
}

// enter begins to compile a macro or a body, which has variables with these names.
func (p *parser) enter(names ...string) *frame {
	p.frame = &frame{up: p.frame, seen: map[string]bool{}}
	p.sets(names...)
	p.frame.first = nil
	return p.frame
}

func (p *parser) leave() { p.frame = p.frame.up }

func (p *parser) sets(names ...string) {
	for _, x := range names {
		if f := p.frame; !f.seen[x] {
			f.seen[x], f.first = true, append(f.first, x)
		}
	}
}

// scope is a scope below s. As in Jinja what is set there first of all is undefined until then, also for a loop before
// that or a macro, whatever the variables of the template are; but not what a scope above knows.
func (f *frame) scope(s *scope) *scope {
	in := s.below()
	for _, x := range f.first {
		up := f.up
		for up != nil && !up.seen[x] {
			up = up.up
		}
		if up == nil {
			in.vars[x] = python.Undefined{Name: x}
		}
	}
	return in
}
