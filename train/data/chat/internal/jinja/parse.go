// Package jinja compiles a template to functions, and runs it.
package jinja

import (
	"slices"
	"strings"

	"github.com/goccl/goccl/train/data/chat/internal/python"
	"github.com/goccl/goccl/train/data/chat/internal/tags"
)

// A template is compiled to functions: an expr computes the value of an expression, and a stmt runs
// a statement.
type (
	expr func(r *run, s *scope) any
	stmt func(r *run, s *scope) signal
)

// signal is how a statement ends: on to the next, out of the loop, or to its next turn.
type signal uint8

const (
	goOn signal = iota
	breaks
	continues
)

// parser compiles the tokens of a template.
type parser struct {
	tokens []tags.Token
	at     int
	deep   int
	marks  bool // there is a {% generation %}
	frame  *frame
}

func (p *parser) now() tags.Token { return p.tokens[p.at] }

func (p *parser) next() tags.Token {
	t := p.tokens[p.at]
	if t.Kind != tags.End {
		p.at++
	}
	return t
}

// is reports whether the next token is an operator or a keyword.
func (p *parser) is(text string) bool {
	t := p.now()
	return (t.Kind == tags.Operator || t.Kind == tags.Name) && t.Text == text
}

// take takes the next token if it is that.
func (p *parser) take(text string) bool {
	if p.is(text) {
		p.at++
		return true
	}
	return false
}

func (p *parser) want(text string) {
	if !p.take(text) {
		panic(python.Failed(p.now().Line, "%q where %q is expected", p.now().Text, text))
	}
}

func (p *parser) ident() string {
	t := p.next()
	if t.Kind != tags.Name {
		panic(python.Failed(t.Line, "%q where a name is expected", t.Text))
	}
	return t.Text
}

func (p *parser) shut() {
	if t := p.next(); t.Kind != tags.Shut {
		panic(python.Failed(t.Line, "%q where the tag is expected to end", t.Text))
	}
}

// nested counts how deep the parser is.
func (p *parser) nested() func() {
	if p.deep++; p.deep > python.MostDeep {
		panic(python.Failed(p.now().Line, "it is nested more than %d deep", python.MostDeep))
	}
	return func() { p.deep-- }
}

// body compiles statements up to a tag that begins with one of ends, which is taken; "": the end of
// the template.
func (p *parser) body(ends ...string) (stmt, string) {
	defer p.nested()()
	var all []stmt
	for {
		switch t := p.next(); {
		case t.Kind == tags.End:
			if ends[0] != "" {
				panic(python.Failed(t.Line, "the template ends where %s is expected", strings.Join(ends, " or ")))
			}
			return block(all), ""
		case t.Kind == tags.Plain:
			all = append(all, func(r *run, _ *scope) signal { r.write(t.Text); return goOn })
		case t.Text == "{{":
			e := p.tuple()
			p.shut()
			all = append(all, func(r *run, s *scope) signal {
				r.budget.At(t.Line)
				r.write(r.budget.Text(e(r, s)))
				return goOn
			})
		default:
			word := p.ident()
			if slices.Contains(ends, word) {
				return block(all), word
			}
			all = append(all, p.statement(word, t.Line))
		}
	}
}

func block(all []stmt) stmt {
	return func(r *run, s *scope) signal {
		for _, f := range all {
			r.budget.Step()
			if x := f(r, s); x != goOn {
				return x
			}
		}
		return goOn
	}
}

func (p *parser) statement(word string, line int) stmt {
	switch word {
	case "if":
		return p.ifs()
	case "for":
		return p.loop()
	case "set":
		return p.set()
	case "macro":
		return p.macro()
	case "generation":
		p.marks = true
		p.shut()
		own := p.enter()
		do, _ := p.body("endgeneration")
		p.leave()
		p.shut()
		return func(r *run, s *scope) signal {
			from := r.out.Len()
			do(r, own.scope(s))
			span := [2]int{from, r.out.Len()}
			if r.deep > 0 {
				span = Captured
			}
			r.spans = append(r.spans, span)
			return goOn
		}
	case "break", "continue":
		p.shut()
		x := map[string]signal{"break": breaks, "continue": continues}[word]
		return func(*run, *scope) signal { return x }
	}
	panic(python.Failed(line, "{%% %s %%} is not supported; these are: if, for, set, macro, generation, break, continue", word))
}

func (p *parser) ifs() stmt {
	cond := p.expression()
	p.shut()
	defer func(n int) { p.frame.first = p.frame.first[:n] }(len(p.frame.first)) // which may be set, and may not
	then, word := p.body("elif", "else", "endif")
	var or stmt
	switch word {
	case "elif":
		or = p.ifs()
	case "else":
		p.shut()
		or, _ = p.body("endif")
		p.shut()
	default:
		p.shut()
	}
	return func(r *run, s *scope) signal {
		switch {
		case python.Truth(cond(r, s)):
			return then(r, s)
		case or != nil:
			return or(r, s)
		}
		return goOn
	}
}

// names reads what a loop or a set assigns to.
func (p *parser) names() (list []string) {
	if p.take("(") {
		defer p.want(")")
	}
	for list = append(list, p.ident()); p.take(","); {
		list = append(list, p.ident())
	}
	return list
}

// assign sets names to a value, or to its parts.
func assign(s *scope, names []string, v any) {
	if len(names) == 1 {
		s.vars[names[0]] = v
		return
	}
	parts := python.Items(v)
	if len(parts) != len(names) {
		panic(python.Failed(0, "%d values for %d names", len(parts), len(names)))
	}
	for i, x := range names {
		s.vars[x] = parts[i]
	}
}

func (p *parser) loop() stmt {
	names := p.names()
	p.want("in")
	over := p.or()
	var cond expr
	if p.take("if") {
		p.enter(names...)
		cond = p.expression()
		p.leave()
	}
	p.shut()
	own := p.enter(append(names, "loop")...)
	do, word := p.body("else", "endfor")
	p.leave()
	p.shut()
	var none stmt
	other := p.enter()
	if word == "else" {
		none, _ = p.body("endfor")
		p.shut()
	}
	p.leave()
	return func(r *run, s *scope) signal {
		of := over(r, s)
		r.budget.Weigh(of)
		all := python.Items(of)
		if cond != nil {
			var some []any
			for _, x := range all {
				r.budget.Step()
				in := s.below()
				assign(in, names, x)
				if python.Truth(cond(r, in)) {
					some = append(some, x)
				}
			}
			all = some
		}
		ended := false // a turn, and not by break or continue: without such Jinja goes on to else
		for i, x := range all {
			for range 8 { // its variables take so much
				r.budget.Step()
			}
			in := own.scope(s)
			in.vars["loop"] = turn(all, i)
			assign(in, names, x)
			how := do(r, in)
			if ended = ended || how == goOn; how == breaks {
				break
			}
		}
		if !ended && none != nil {
			return none(r, other.scope(s))
		}
		return goOn
	}
}

// turn is the variable loop.
func turn(all []any, i int) *python.Dict {
	d, n := python.NewDict(), len(all)
	at := func(k int) any {
		if k < 0 || k >= n {
			return python.Undefined{Name: "loop's neighbor"}
		}
		return all[k]
	}
	for k, v := range map[string]any{"index": int64(i + 1), "index0": int64(i),
		"revindex": int64(n - i), "revindex0": int64(n - i - 1),
		"first": i == 0, "last": i == n-1, "length": int64(n), "previtem": at(i - 1), "nextitem": at(i + 1),
		"cycle": python.Method("cycle", func(_ *python.Budget, a python.Arguments) any {
			return a.Get(i%max(len(a.List), 1), "", nil)
		})} {
		d.Set(k, v)
	}
	return d
}

func (p *parser) set() stmt {
	line := p.now().Line
	names := p.names()
	field := ""
	if p.take(".") {
		field = p.ident()
		p.frame.seen[names[0]] = true
	}
	if p.now().Kind == tags.Shut { // up to endset
		p.shut()
		own := p.enter()
		do, _ := p.body("endset")
		p.leave()
		p.sets(names[0])
		p.shut()
		return func(r *run, s *scope) signal {
			s.vars[names[0]] = r.captured(func() { do(r, own.scope(s)) })
			return goOn
		}
	}
	p.want("=")
	value := p.tuple()
	p.sets(names...)
	p.shut()
	return func(r *run, s *scope) signal {
		r.budget.At(line)
		v := value(r, s)
		if field == "" {
			assign(s, names, v)
			return goOn
		}
		d, ok := s.find(names[0]).(*python.Dict)
		if !ok || !d.Free {
			panic(python.Failed(line, "%s.%s is set, and %s is no namespace", names[0], field, names[0]))
		}
		d.Set(field, v)
		return goOn
	}
}

func (p *parser) macro() stmt {
	of := p.ident()
	p.sets(of)
	own := p.enter()
	var names []string
	var values []expr
	p.want("(")
	for !p.take(")") {
		names = append(names, p.ident())
		own.seen[names[len(names)-1]] = true
		values = append(values, nil)
		if p.take("=") {
			values[len(values)-1] = p.expression()
		}
		if !p.is(")") {
			p.want(",")
		}
	}
	p.shut()
	do, _ := p.body("endmacro")
	p.leave()
	p.shut()
	return func(r *run, s *scope) signal {
		s.vars[of] = python.Method(of, func(_ *python.Budget, a python.Arguments) any {
			in := own.scope(s)
			if len(a.List) > len(names) {
				panic(python.Failed(0, "macro %s takes %d arguments, and gets %d", of, len(names), len(a.List)))
			}
			for i, x := range names {
				v := a.Get(i, x, python.Undefined{Name: x})
				if _, not := v.(python.Undefined); not && values[i] != nil {
					v = values[i](r, in)
				}
				in.vars[x] = v
			}
			return r.captured(func() { do(r, in) })
		})
		return goOn
	}
}
