package jinja

import (
	"strings"

	"github.com/goccl/goccl/train/data/chat/internal/python"
	"github.com/goccl/goccl/train/data/chat/internal/tags"
)

// run is one rendering.
type run struct {
	out    *strings.Builder
	spans  [][2]int // what {% generation %} has written
	deep   int      // macros and blocks that are captured
	budget *python.Budget
}

// Captured stands for a span that a macro or a set has: where its text goes is not known.
var Captured = [2]int{-1, -1}

// scope is the variables of a loop, a macro or the template.
type scope struct {
	vars map[string]any
	up   *scope
}

func (s *scope) below() *scope { return &scope{map[string]any{}, s} }

func (s *scope) find(name string) any {
	for ; s != nil; s = s.up {
		if v, ok := s.vars[name]; ok {
			return v
		}
	}
	return python.Undefined{Name: name}
}

// Program is a compiled template.
type Program struct {
	// marks says that the template has a {% generation %}.
	Marks bool

	do stmt
}

// mostSource is how many bytes a template may have: a chain such as 1+1+1 is as deep as it is long.
const mostSource = 1 << 18

// Compile compiles a template.
func Compile(src string) (c *Program, err error) {
	defer python.Rescue(&err)
	if len(src) > mostSource {
		panic(python.Failed(0, "the template has %d bytes, and %d are the most", len(src), mostSource))
	}
	p := &parser{tokens: tags.Lex(src)}
	own := p.enter()
	do, _ := p.body("")
	return &Program{p.marks, func(r *run, s *scope) signal { return do(r, own.scope(s)) }}, nil
}

// Execute runs a template with variables. It returns the text, and which bytes {% generation %} has
// written, from and to.
func (p *Program) Execute(vars map[string]any) (text string, spans [][2]int, err error) {
	r := &run{out: &strings.Builder{}, budget: &python.Budget{}}
	defer func() {
		if f, ok := err.(*python.Failure); ok && f.Line == 0 { // thrown where no line is known
			f.Line = r.budget.Line
		}
	}()
	defer python.Rescue(&err)
	p.do(r, &scope{vars: vars})
	return r.out.String(), r.spans, nil
}

func (r *run) write(s string) {
	r.budget.Grow(len(s))
	if r.out.WriteString(s); r.out.Len() > python.MostText {
		r.budget.Grow(r.out.Len())
	}
}

// captured is what f writes.
func (r *run) captured(f func()) string {
	if r.deep++; r.deep > python.MostCalls {
		panic(python.Failed(r.budget.Line, "macros are called more than %d deep", python.MostCalls))
	}
	out := r.out
	r.out = &strings.Builder{}
	f()
	text := r.out.String()
	r.out = out
	r.deep--
	return text
}
