package jinja

import (
	"slices"
	"strconv"

	"github.com/goccl/goccl/train/data/chat/internal/filters"
	"github.com/goccl/goccl/train/data/chat/internal/python"
	"github.com/goccl/goccl/train/data/chat/internal/tags"
)

// tuple is an expression, or several with commas between them.
func (p *parser) tuple() expr {
	first := p.expression()
	if !p.is(",") {
		return first
	}
	all := []expr{first}
	for p.take(",") && p.now().Kind != tags.Shut && !p.is(")") {
		all = append(all, p.expression())
	}
	return listOf(all, true)
}

func listOf(all []expr, tuple bool) expr {
	return func(r *run, s *scope) any {
		l := &python.List{Tuple: tuple}
		for _, e := range all {
			l.Items = append(l.Items, e(r, s))
		}
		return l
	}
}

// expression is one with if and else.
func (p *parser) expression() expr {
	defer p.nested()()
	e := p.or()
	for p.take("if") {
		then, cond := e, p.or()
		or := func(*run, *scope) any { return python.Undefined{Name: "the else of an if"} }
		if p.take("else") {
			or = p.expression()
		}
		e = func(r *run, s *scope) any {
			if python.Truth(cond(r, s)) {
				return then(r, s)
			}
			return or(r, s)
		}
	}
	return e
}

func (p *parser) or() expr {
	a := p.and()
	for p.take("or") {
		x, y := a, p.and()
		a = func(r *run, s *scope) any {
			if v := x(r, s); python.Truth(v) {
				return v
			}
			return y(r, s)
		}
	}
	return a
}

func (p *parser) and() expr {
	a := p.not()
	for p.take("and") {
		x, y := a, p.not()
		a = func(r *run, s *scope) any {
			if v := x(r, s); !python.Truth(v) {
				return v
			}
			return y(r, s)
		}
	}
	return a
}

func (p *parser) not() expr {
	if p.take("not") {
		defer p.nested()()
		x := p.not()
		return func(r *run, s *scope) any { return !python.Truth(x(r, s)) }
	}
	return p.comparison()
}

// comparison is a chain such as a < b <= c.
func (p *parser) comparison() expr {
	first := p.binary(0)
	var ops []string
	var rest []expr
	for {
		op := p.now().Text
		switch {
		case p.take("=="), p.take("!="), p.take("<"), p.take("<="), p.take(">"), p.take(">="), p.take("in"):
		case p.is("not") && p.tokens[p.at+1].Text == "in":
			p.at += 2
			op = "not in"
		default:
			if ops == nil {
				return first
			}
			return func(r *run, s *scope) any {
				a := first(r, s)
				for i, op := range ops {
					b := rest[i](r, s)
					if !r.budget.Compares(op, a, b) {
						return false
					}
					a = b
				}
				return true
			}
		}
		ops, rest = append(ops, op), append(rest, p.binary(0))
	}
}

// levels are the binary operators, by how strongly they bind.
var levels = [][]string{{"+", "-"}, {"~"}, {"*", "/", "//", "%"}, {"**"}}

func (p *parser) binary(level int) expr {
	if level == len(levels) {
		return p.unary(true)
	}
	a := p.binary(level + 1)
	for slices.Contains(levels[level], p.now().Text) && p.now().Kind == tags.Operator {
		t := p.next()
		x, y := a, p.binary(level+1)
		a = func(r *run, s *scope) any {
			v, w := x(r, s), y(r, s)
			r.budget.At(t.Line, v, w)
			return python.Calculate(r.budget, t.Text, v, w)
		}
	}
	return a
}

func (p *parser) unary(filters bool) expr {
	defer p.nested()()
	var e expr
	switch {
	case p.take("-"):
		x := p.unary(false)
		e = func(r *run, s *scope) any { return python.Calculate(r.budget, "-", int64(0), x(r, s)) }
	case p.take("+"):
		e = p.unary(false)
	default:
		e = p.postfix(p.primary())
	}
	for filters {
		switch {
		case p.take("|"):
			e = p.filter(e)
		case p.take("is"):
			e = p.test(e)
		case p.is("("):
			e = p.call(e)
		default:
			return e
		}
	}
	return e
}

func (p *parser) filter(of expr) expr {
	line, what := p.now().Line, p.ident()
	f, ok := filters.Filters[what]
	if !ok {
		panic(python.Failed(line, "the filter %s is not supported; these are: %s", what, filters.Known(filters.Filters)))
	}
	args := p.args(p.is("("))
	return func(r *run, s *scope) any {
		r.budget.Step()
		a := args(r, s)
		v := of(r, s)
		r.budget.At(line, append(a.List, v)...)
		return f(r.budget, v, a)
	}
}

func (p *parser) test(of expr) expr {
	not := p.take("not")
	line, what := p.now().Line, p.next().Text
	f, ok := filters.Tests[what]
	if !ok {
		panic(python.Failed(line, "the test %s is not supported; these are: %s", what, filters.Known(filters.Tests)))
	}
	args := p.args(p.is("("))
	t := p.now()
	word := t.Kind == tags.Name && !slices.Contains([]string{"else", "or", "and", "is", "if", "in", "not"}, t.Text)
	if t.Kind == tags.Str || t.Kind == tags.Number || word || p.is("[") {
		x := p.postfix(p.primary())
		args = func(r *run, s *scope) python.Arguments { return python.Arguments{List: []any{x(r, s)}} }
	}
	return func(r *run, s *scope) any {
		v, a := of(r, s), args(r, s)
		r.budget.At(line, v)
		return f(r.budget, v, a) != not
	}
}

// args reads the arguments of a call, if there are any.
func (p *parser) args(there bool) func(r *run, s *scope) python.Arguments {
	var list []expr
	named := map[string]expr{}
	if there {
		p.want("(")
		for !p.take(")") {
			if t := p.now(); t.Kind == tags.Name && p.tokens[p.at+1].Kind == tags.Operator && p.tokens[p.at+1].Text == "=" {
				p.at += 2
				named[t.Text] = p.expression()
			} else {
				list = append(list, p.expression())
			}
			if !p.is(")") {
				p.want(",")
			}
		}
	}
	return func(r *run, s *scope) python.Arguments {
		a := python.Arguments{Named: map[string]any{}}
		for _, e := range list {
			a.List = append(a.List, e(r, s))
		}
		for k, e := range named {
			a.Named[k] = e(r, s)
		}
		return a
	}
}

func (p *parser) call(of expr) expr {
	line := p.now().Line
	args := p.args(true)
	return func(r *run, s *scope) any {
		v := of(r, s)
		a := args(r, s)
		r.budget.At(line, a.List...)
		f, ok := v.(*python.Function)
		if !ok {
			panic(python.Failed(line, "%s is called, and is no function", python.NameOf(v)))
		}
		r.budget.Step()
		return f.Call(r.budget, a)
	}
}

// postfix is what follows a value: .field, [key], [from:to:by], a call.
func (p *parser) postfix(e expr) expr {
	for {
		line := p.now().Line
		of := e
		switch {
		case p.take("."):
			t := p.next()
			if t.Kind != tags.Name && t.Kind != tags.Number {
				panic(python.Failed(t.Line, "%q where a field is expected", t.Text))
			}
			var key any = t.Text
			if i, err := strconv.ParseInt(t.Text, 10, 64); err == nil {
				key = i
			}
			e = func(r *run, s *scope) any {
				v := of(r, s)
				r.budget.At(line, v)
				return python.Attribute(v, key)
			}
		case p.take("["):
			e = p.subscript(of, line)
		case p.is("("):
			e = p.call(of)
		default:
			return e
		}
	}
}

func (p *parser) subscript(of expr, line int) expr {
	var parts [3]expr
	n := 0
	for ; n < 3; n++ {
		if !p.is(":") && !p.is("]") {
			parts[n] = p.expression()
		}
		if !p.take(":") {
			break
		}
	}
	p.want("]")
	if n == 0 && parts[0] == nil {
		panic(python.Failed(line, "[] without a key"))
	}
	return func(r *run, s *scope) any {
		v := of(r, s)
		var at [3]any
		for i, e := range parts {
			if e != nil {
				at[i] = e(r, s)
			}
		}
		if n == 0 {
			if r.budget.At(line); python.TypeOf(v) == "str" {
				r.budget.Weigh(v)
			}
			return python.Index(v, at[0])
		}
		r.budget.At(line, v)
		return python.Slice(v, at)
	}
}

func (p *parser) primary() expr {
	t := p.next()
	value := func(v any) expr { return func(*run, *scope) any { return v } }
	switch {
	case t.Kind == tags.Str:
		for p.now().Kind == tags.Str {
			t.Text += p.next().Text
		}
		return value(t.Text)
	case t.Kind == tags.Number:
		return value(t.Value())
	case t.Kind == tags.Name:
		switch t.Text {
		case "true", "True":
			return value(true)
		case "false", "False":
			return value(false)
		case "none", "None":
			return value(nil)
		}
		p.frame.seen[t.Text] = true
		return func(r *run, s *scope) any { return s.find(t.Text) }
	case t.Kind == tags.Operator && t.Text == "(":
		if p.take(")") {
			return listOf(nil, true)
		}
		e := p.tuple()
		p.want(")")
		return e
	case t.Kind == tags.Operator && t.Text == "[":
		return listOf(p.several("]"), false)
	case t.Kind == tags.Operator && t.Text == "{":
		return p.dict()
	}
	panic(python.Failed(t.Line, "%q where a value is expected", t.Text))
}

// several are expressions with commas between them, up to a bracket.
func (p *parser) several(ends string) (all []expr) {
	for !p.take(ends) {
		all = append(all, p.expression())
		if !p.is(ends) {
			p.want(",")
		}
	}
	return all
}

func (p *parser) dict() expr {
	var keys, values []expr
	for !p.take("}") {
		keys = append(keys, p.expression())
		p.want(":")
		values = append(values, p.expression())
		if !p.is("}") {
			p.want(",")
		}
	}
	return func(r *run, s *scope) any {
		d := python.NewDict()
		for i := range keys {
			d.Set(keys[i](r, s), values[i](r, s))
		}
		return d
	}
}
