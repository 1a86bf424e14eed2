// Package chat makes the text of a conversation that a model was trained on, by the chat template
// that comes with the model: what transformers' apply_chat_template does.
//
//	t, err := chat.Read("model") // its chat_template.jinja or tokenizer_config.json
//	text, err := t.Render([]chat.Message{{Role: "user", Content: "How are you?"}}, &chat.Options{Prompt: true})
//	ids := tokenizer.Encode(text, false) // the template writes <s> and its like itself
//
// A template is a program in Jinja, from outside. This is an interpreter for what such templates
// use: if, for, set, macro, break, continue and {% generation %}, Jinja's expressions, and the
// filters, tests and methods that the templates of Llama, Mistral, Qwen and their relatives call;
// anything else is an error of Parse or Render that names it. A template reaches no file, no
// network and nothing of the program, and steps, text and nesting are bounded.
package chat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccl/goccl/internal/files"

	"github.com/goccl/goccl/train/data/chat/internal/filters"
	"github.com/goccl/goccl/train/data/chat/internal/jinja"
	"github.com/goccl/goccl/train/data/chat/internal/python"
)

// Template is a chat template. Its methods may be called by several goroutines at once.
type Template struct {
	program *jinja.Program
	vars    map[string]any // such as bos_token
}

// Message is a turn of a conversation.
type Message struct {
	Role, Content string
	// JSON is the whole message as an object, if it has more than role and content, such as
	// tool_calls: these two do not count then.
	JSON json.RawMessage
}

// UnmarshalJSON keeps an object as it is.
func (m *Message) UnmarshalJSON(b []byte) error {
	var o map[string]json.RawMessage
	if err := json.Unmarshal(b, &o); err != nil {
		return err
	}
	*m = Message{JSON: slices.Clone(b)}
	if json.Unmarshal(o["role"], &m.Role) != nil {
		return errors.New(`a message without the field "role", or it is no string`)
	}
	_ = json.Unmarshal(o["content"], &m.Content) // a list of parts, or null, is in JSON
	return nil
}

func (m *Message) value() (any, error) {
	if m.JSON != nil {
		v, err := decode(m.JSON)
		if d, ok := v.(*python.Dict); ok {
			nameThoughts(d)
		}
		return v, err
	}
	d := python.NewDict()
	d.Set("role", m.Role)
	d.Set("content", m.Content)
	return d, nil
}

// nameThoughts gives the thoughts in a message the names that templates read, as transformers does.
func nameThoughts(d *python.Dict) {
	for _, name := range []string{"reasoning_content", "thinking", "reasoning"} {
		if v := d.At[name]; v != nil {
			d.Set("reasoning_content", v)
			if _, ok := d.At["thinking"]; !ok {
				d.Set("thinking", v)
			}
			return
		}
	}
}

// Options are what a template may ask for beside the messages.
type Options struct {
	// Prompt begins the assistant's next turn: add_generation_prompt.
	Prompt bool
	// Tools and Documents are lists in JSON.
	Tools, Documents json.RawMessage
	// Vars are further variables, such as enable_thinking, which must be fit for JSON.
	Vars map[string]any
	// Now is the time that strftime_now has, instead of the real one.
	Now time.Time
}

// mostFile is how many bytes a file with a template may have.
const mostFile = 1 << 26

// Read reads the template of a model's directory: chat_template.jinja, or the field chat_template
// of tokenizer_config.json. From that file it takes special tokens such as bos_token, too.
func Read(dir string) (*Template, error) {
	name := filepath.Join(dir, "tokenizer_config.json")
	b, err := files.Read(name, mostFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("chat: %w", err)
	}
	var config map[string]json.RawMessage
	if err == nil {
		if err := json.Unmarshal(b, &config); err != nil {
			return nil, fmt.Errorf("chat: %s: %w", name, err)
		}
	}
	src, err := source(config)
	if err != nil {
		return nil, fmt.Errorf("chat: %s: %w", name, err)
	}
	file := filepath.Join(dir, "chat_template.jinja")
	switch b, err := files.Read(file, mostFile); {
	case err == nil:
		src, name = string(b), file
	case !errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("chat: %w", err)
	case src == "":
		return nil, fmt.Errorf("chat: %s has neither a chat_template.jinja nor a tokenizer_config.json with the field chat_template", dir)
	}
	t, err := parse(src)
	if err != nil {
		return nil, fmt.Errorf("chat: %s: %w", name, err)
	}
	for _, kind := range []string{"bos", "eos", "unk", "pad", "sep", "cls", "mask"} {
		field := kind + "_token"
		var plain string
		var object struct{ Content string }
		if json.Unmarshal(config[field], &plain) == nil && string(config[field]) != "null" {
			t.vars[field] = plain
		} else if json.Unmarshal(config[field], &object) == nil && object.Content != "" {
			t.vars[field] = object.Content
		}
	}
	return t, nil
}

// source is the field chat_template: a text, or several with names, of which the one named default
// counts.
func source(config map[string]json.RawMessage) (src string, err error) {
	raw, ok := config["chat_template"]
	if !ok || json.Unmarshal(raw, &src) == nil {
		return src, nil
	}
	var several []struct{ Name, Template string }
	if err := json.Unmarshal(raw, &several); err != nil {
		return "", fmt.Errorf("chat_template: %w", err)
	}
	for _, x := range several {
		if x.Name == "default" {
			return x.Template, nil
		}
	}
	return "", errors.New(`chat_template: none of them has the name "default"`)
}

// Parse compiles a template. tokens are variables of it, such as bos_token.
func Parse(src string, tokens map[string]string) (*Template, error) {
	t, err := parse(src)
	if err != nil {
		return nil, fmt.Errorf("chat: %w", err)
	}
	for k, v := range tokens {
		t.vars[k] = v
	}
	return t, nil
}

func parse(src string) (*Template, error) {
	p, err := jinja.Compile(src)
	return &Template{program: p, vars: map[string]any{}}, err
}

// Render returns the text of a conversation. o may be nil.
func (t *Template) Render(messages []Message, o *Options) (string, error) {
	text, _, err := t.render(messages, o)
	return text, err
}

func (t *Template) render(messages []Message, o *Options) (text string, spans [][2]int, err error) {
	if o == nil {
		o = &Options{}
	}
	vars, err := t.variables(messages, o)
	if err != nil {
		return "", nil, fmt.Errorf("chat: %w", err)
	}
	if text, spans, err = t.program.Execute(vars); err != nil {
		return "", nil, fmt.Errorf("chat: %w", err)
	}
	return text, spans, nil
}

// variables are those of a rendering.
func (t *Template) variables(messages []Message, o *Options) (map[string]any, error) {
	vars := filters.Globals(func() time.Time {
		if o.Now.IsZero() {
			return time.Now()
		}
		return o.Now
	})
	maps.Copy(vars, t.vars)
	all := &python.List{}
	for i := range messages {
		m, err := messages[i].value()
		if err != nil {
			return nil, fmt.Errorf("message %d: %w", i, err)
		}
		all.Items = append(all.Items, m)
	}
	vars["messages"], vars["add_generation_prompt"] = all, o.Prompt
	vars["tools"], vars["documents"] = nil, nil
	for name, raw := range map[string]json.RawMessage{"tools": o.Tools, "documents": o.Documents} {
		if raw == nil {
			continue
		}
		v, err := decode(raw)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		vars[name] = v
	}
	for name, v := range o.Vars {
		raw, err := json.Marshal(v)
		if err != nil {
			return nil, fmt.Errorf("the variable %s: %w", name, err)
		}
		if vars[name], err = decode(raw); err != nil {
			return nil, fmt.Errorf("the variable %s: %w", name, err)
		}
	}
	return vars, nil
}

// Answers returns the text of a conversation and which bytes of it are the assistant's, from and
// to. They are what the template has between {% generation %} and {% endgeneration %}. Without that
// a turn of the assistant is what its message adds to the text of those before it, with Prompt.
// That must be how the text of all of them begins: templates that write earlier turns anew, as Qwen
// 3's leaves out their thoughts, need the marks, and it is an error without them. Without marks each
// turn of the assistant takes two renderings of all that is before it: mark the template if
// conversations have hundreds of turns.
func (t *Template) Answers(messages []Message, o *Options) (text string, spans [][2]int, err error) {
	if o == nil {
		o = &Options{}
	}
	all := *o
	all.Prompt = false
	if text, spans, err = t.render(messages, &all); slices.Contains(spans, jinja.Captured) {
		return "", nil, errors.New("chat: {% generation %} is in a macro or a set, so which text it marks cannot be known: move it out")
	}
	if err != nil || t.program.Marks {
		return text, spans, err
	}
	for i := range messages {
		if messages[i].Role != "assistant" {
			continue
		}
		begun := all
		begun.Prompt = true
		before, _, err := t.render(messages[:i], &begun)
		if err != nil {
			return "", nil, err
		}
		upTo, _, err := t.render(messages[:i+1], &all)
		if err != nil {
			return "", nil, err
		}
		if !strings.HasPrefix(upTo, before) || !strings.HasPrefix(text, upTo) {
			return "", nil, fmt.Errorf("chat: the template writes what is before message %d otherwise when more follows: "+
				"which text is the assistant's only {%% generation %%} in the template can say", i)
		}
		spans = append(spans, [2]int{len(before), len(upTo)})
	}
	return text, spans, nil
}
