// Command finetune trains a model of Hugging Face's on conversations or answers, on GPUs or a CPU, and writes it back:
//
//	go run -tags xla ./examples/finetune -model examples/finetune/testdata/tiny -data examples/finetune/testdata/train.jsonl
//	./finetune -np 8 -backend nccl -zero 3 -bf16 -base nf4 -model Llama-3.2-1B -data train.jsonl -held held.jsonl -out tuned
//
// The directory of the model has config.json, tokenizer.json and its weights; without weights it
// begins with random ones. What is trained are adapters (LoRA), or with -lora "" everything. It is
// scored before and after, continues a prompt, and is written with the adapters merged, and without
// the model for peft.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/examples/internal/job"
	"github.com/goccl/goccl/internal/files"
	"github.com/goccl/goccl/train/data"
	"github.com/goccl/goccl/train/data/bpe"
	"github.com/goccl/goccl/train/data/chat"
	"github.com/goccl/goccl/train/data/text"
	"github.com/goccl/goccl/train/fit"
	"github.com/goccl/goccl/train/fit/loop"
	"github.com/goccl/goccl/train/fit/lora"
	"github.com/goccl/goccl/train/fit/machine"
	"github.com/goccl/goccl/train/fit/sample"
	"github.com/goccl/goccl/train/optim"
	"github.com/goccl/goccl/xla/hlo"
	"github.com/goccl/goccl/xla/nn"
	"github.com/goccl/goccl/xla/nn/models"
)

// config is what the flags say.
type config struct {
	loop.Flags
	context, rank, tokens, chunk               int
	alpha, dropout                             float64
	sample                                     sample.Options
	stable                                     bool
	model, data, held, kind, lora, prompt, out string
}

func parse(args []string, out io.Writer) (*config, error) {
	c := &config{}
	c.Rows, c.LR, c.Warmup, c.Run.Steps, c.Run.Log = 8, 3e-3, 5, 60, 10
	c.Fit.Clip, c.Fit.Seed, c.Machine.Share = 1, 1, true
	f := flag.NewFlagSet("finetune", flag.ContinueOnError)
	c.Define(f)
	f.StringVar(&c.model, "model", "", "`directory` of the model: config.json, tokenizer.json, weights")
	f.StringVar(&c.data, "data", "", "`file` of JSON lines to train on")
	f.StringVar(&c.held, "held", "", "`file` of JSON lines to score (default: those of -data)")
	f.StringVar(&c.kind, "kind", "completion", "what a line has, by its `name`: completion, {\"prompt\", \"completion\"}; chat, {\"messages\"}; text, {\"text\"}")
	f.StringVar(&c.lora, "lora", "all-linear", "`modules` with adapters, as peft's target_modules: names with commas between, or all-linear; \"\": all is trained")
	f.IntVar(&c.rank, "rank", 8, "`rank` of the adapters")
	f.Float64Var(&c.alpha, "alpha", 16, "`number` that adapters are scaled by, over the rank")
	f.BoolVar(&c.stable, "rslora", false, "scale by the root of the rank instead")
	f.Float64Var(&c.dropout, "dropout", 0, "`rate` of dropout before adapters")
	f.StringVar((*string)(&c.Fit.Base), "base", "f32", "`type` in which the frozen model is held: f32, bf16, int8 or nf4")
	f.IntVar(&c.context, "context", 64, "`tokens` per row")
	f.IntVar(&c.chunk, "chunk", 0, "compute logits and loss of so many `tokens` at a time: less memory; 0: of all")
	f.StringVar(&c.prompt, "prompt", "", "`text` to continue before and after; with -kind chat what a user says")
	f.IntVar(&c.tokens, "tokens", 32, "`tokens` to continue it by")
	f.Float64Var(&c.sample.Temperature, "temperature", 0, "`temperature` of the choice; 0: the likeliest")
	f.Float64Var(&c.sample.TopP, "top-p", 1, "`share` of probability to choose from")
	f.StringVar(&c.out, "out", "", "`directory` for merged/ and adapters/")
	groups := [][]string{{"model", "model", "lora", "rank", "alpha", "rslora", "dropout", "base", "bf16"},
		{"data", "data", "held", "kind", "context", "rows"}, {"run", "np", "backend", "zero", "micro", "chunk", "steps",
			"log", "lr", "warmup", "clip", "seed", "plugin", "options", "flags", "share"},
		{"checkpoints", "save", "every", "keep", "resume"},
		{"output", "prompt", "tokens", "temperature", "top-p", "out", "json", "svg"}}
	if err := job.Parse(f, args, out, "finetune trains a model of Hugging Face's on answers, and writes it back.\n", groups, ""); err != nil {
		return c, err
	}
	if c.model == "" || c.data == "" {
		return c, errors.New("give -model, a directory of Hugging Face's, and -data, a file of JSON lines")
	}
	if c.held == "" {
		c.held = c.data
	}
	if err := errors.Join(job.AtLeast(f, 1, "rank", "rows", "micro", "context", "steps", "log", "keep", "tokens"),
		job.AtLeast(f, 0, "chunk")); err != nil {
		return c, err
	}
	set := map[string]bool{}
	f.Visit(func(f *flag.Flag) { set[f.Name] = true })
	for _, name := range []string{"rank", "alpha", "rslora", "dropout", "base"} {
		if set[name] && c.lora == "" {
			return c, fmt.Errorf("-%s is for adapters, and with -lora \"\" there are none", name)
		}
	}
	return c, errors.Join(c.Check(), c.sample.Check())
}

func main() {
	out := &job.Output{W: os.Stdout}
	c, err := parse(os.Args[1:], out)
	job.Main("finetune", c.NP, false, err, out, func(ctx context.Context) error {
		c.Run.Stop = job.Signals() // the first ends the run after the steps under way
		return join(ctx, c, out)
	})
}

// join is one rank from Join to Close.
func join(ctx context.Context, c *config, out io.Writer) error {
	world, err := ccl.Join(ctx, &ccl.Options{Backend: c.Backend})
	if err != nil {
		return err
	}
	return errors.Join(tune(ctx, world, c, out), world.Close())
}

// tuner is one rank's work.
type tuner struct {
	c        *config
	world    *ccl.Comm
	out      io.Writer
	tok      *bpe.Tokenizer
	of       models.Config
	ends     []int32 // the tokens that end a text
	adapters *lora.Config
	begun    []setting // what a checkpoint keeps of the flags
}

// tune trains on the ranks of world.
func tune(ctx context.Context, world *ccl.Comm, c *config, out io.Writer) (err error) {
	t := &tuner{c: c, world: world, out: out}
	if world.Rank() > 0 {
		t.out = io.Discard
	}
	if err := c.Place(world.Size()); err != nil {
		return err
	}
	if info, err := os.Stat(c.model); err != nil || !info.IsDir() {
		return alone(world, fmt.Errorf("-model %s: there is no such directory here; download a model of Hugging Face's "+
			"first, as by `hf download`", c.model))
	}
	if t.tok, err = bpe.Read(filepath.Join(c.model, "tokenizer.json")); err == nil {
		t.of, err = models.Read(c.model)
	}
	if err == nil {
		t.ends, err = t.endings()
	}
	if err != nil {
		return alone(world, err)
	}
	model, err := t.network()
	if err != nil {
		return alone(world, err)
	}
	for _, dir := range []string{t.written("merged"), t.written("adapters")} { // better known now than at the end
		if _, err := os.Lstat(dir); c.out != "" && err == nil && world.Rank() == 0 {
			return alone(world, fmt.Errorf("-out %s: %s is there already: name another directory", c.out, dir))
		}
	}
	train, err := t.rowsOf(ctx, c.data)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, train.f.Close()) }()
	held, err := t.rowsOf(ctx, c.held)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.f.Close()) }()
	if n := train.cut(); n > 0 {
		fmt.Fprintf(t.out, "%d of %d documents of %s have more tokens than -context %d, and are cut\n", n, train.f.Len(),
			c.data, c.context)
	}
	r := &loop.Run{O: c.Run}
	r.O.Out, r.O.Tokens, r.O.Rate, r.O.Batches = t.out, c.Rows*c.context, c.Rate, train.batches
	r.O.Held, r.O.EvalEvery, r.O.Begin, r.O.End = held.all(), c.Run.Log, t.begin, t.end
	if c.Run.Save != "" {
		if t.begun, err = t.settings(ctx); err != nil {
			return err
		}
		r.O.State, r.O.Check = func() any { return t.begun }, t.resumes
	}
	o := c.Fit
	o.Tokens, o.Fused, o.Masked, o.Adam = c.context, true, true, optim.AdamW{Beta1: .9, Beta2: .999, Eps: 1e-8}
	return r.On(ctx, world, &c.Machine, func(m *machine.Machine) (*fit.Trainer, error) {
		x, err := fit.New(ctx, m, model, &o)
		if err == nil && t.adapters != nil {
			if none := t.adapters.Unmatched(x.Params()); len(none) > 0 {
				err = fmt.Errorf("-lora %s: no linear module of the model is called %s", c.lora, none[0])
				return nil, errors.Join(err, x.Close())
			}
		}
		return x, err
	})
}

// alone aborts the Comm with an error that may be this rank's alone.
func alone(world *ccl.Comm, err error) error {
	world.Abort(err)
	return err
}

// written returns the path of a directory below -out.
func (t *tuner) written(name string) string { return filepath.Join(t.c.out, name) }

// network is the model, with adapters.
func (t *tuner) network() (*nn.Model, error) {
	m := t.of.Model()
	m.Chunk = t.c.chunk
	if t.c.Fit.BF16 {
		m.Act = hlo.BF16
	}
	if t.c.lora == "" {
		return m, nil
	}
	a := lora.New()
	a.Base, a.Rank, a.Alpha, a.Dropout, a.Stable = t.c.model, t.c.rank, t.c.alpha, t.c.dropout, t.c.stable
	a.Targets.List = strings.FieldsFunc(t.c.lora, func(r rune) bool { return r == ',' || r == ' ' })
	if t.c.lora == "all-linear" {
		a.Targets = lora.Names{Pattern: t.c.lora}
	}
	_, a.Turned = t.of.(*models.GPT2)
	t.adapters = a
	var err error
	m.LoRA, err = a.Option()
	return m, err
}

// begin loads the weights, and says what the model does before it is trained.
func (t *tuner) begin(ctx context.Context, x *fit.Trainer) error {
	switch has, err := weights(t.c.model); {
	case err != nil:
		return alone(t.world, err)
	case has:
		if err := x.LoadModel(ctx, t.c.model); err != nil {
			return err
		}
	default:
		fmt.Fprintf(t.out, "%s has no weights: beginning with random ones\n", t.c.model)
	}
	return t.say(ctx, x)
}

// weights reports whether a model has some. Those of a format that is not read are an error.
func weights(dir string) (has bool, err error) {
	entries, err := os.ReadDir(dir)
	var other string
	for _, e := range entries {
		switch name := e.Name(); {
		case name == "model.safetensors" || name == "model.safetensors.index.json":
			has = true
		case strings.HasSuffix(name, ".safetensors"), strings.HasSuffix(name, ".gguf"),
			strings.HasPrefix(name, "pytorch_model"):
			other = name
		}
	}
	if err == nil && !has && other != "" {
		err = fmt.Errorf("%s has the weights %s, and no model.safetensors or model.safetensors.index.json: "+
			"save it with safetensors", dir, other)
	}
	return has, err
}

// say continues the prompt.
func (t *tuner) say(ctx context.Context, x *fit.Trainer) error {
	if t.c.prompt == "" {
		return nil
	}
	o := &fit.GenerateOptions{Tokens: t.c.tokens, Sample: t.c.sample, Seed: t.c.Fit.Seed, Stop: t.ends}
	prompt, err := t.prompt()
	if err != nil {
		return alone(t.world, err)
	}
	rows, err := x.Generate(ctx, [][]int32{prompt}, o)
	if err == nil {
		fmt.Fprintf(t.out, "%q\n", t.tok.Decode(rows[0], true))
	}
	return err
}

// prompt returns the tokens to continue: with -kind chat the template's of a user's message, up to the answer.
func (t *tuner) prompt() ([]int32, error) {
	if t.c.kind != "chat" {
		return t.tok.Encode(t.c.prompt, true), nil
	}
	tmpl, err := chat.Read(t.c.model)
	if err != nil {
		return nil, err
	}
	text, err := tmpl.Render([]chat.Message{{Role: "user", Content: t.c.prompt}}, &chat.Options{Prompt: true})
	return t.tok.Encode(text, false), err
}

// end says what it does then, and writes it.
func (t *tuner) end(ctx context.Context, x *fit.Trainer) error {
	if err := t.say(ctx, x); err != nil || t.c.out == "" {
		return err
	}
	merged, adapters := t.written("merged"), t.written("adapters")
	if err := x.Export(ctx, merged, 5<<30); err != nil {
		return err
	}
	if t.adapters != nil {
		if err := x.ExportAdapters(ctx, adapters); err != nil {
			return err
		}
	}
	_, err := data.OnRoot(ctx, t.world, 0, func() ([]byte, error) {
		err := t.configure(merged)
		for _, name := range []string{"tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
			"generation_config.json"} {
			text, failed := files.ReadIn(t.c.model, name, 1<<30)
			if errors.Is(failed, os.ErrNotExist) {
				continue
			}
			if failed == nil {
				failed = files.Write(filepath.Join(merged, name), text)
			}
			err = errors.Join(err, failed)
		}
		if t.adapters != nil {
			err = errors.Join(err, t.adapters.Write(adapters))
		}
		return nil, err
	})
	if err == nil {
		fmt.Fprintf(t.out, "wrote %s\n", t.c.out)
	}
	return err
}

// configure writes config.json as the model had it, with all that only transformers reads, such as eos_token_id, but
// for the type of weights: these have another now.
func (t *tuner) configure(dir string) error {
	text, err := files.ReadIn(t.c.model, "config.json", 1<<20)
	if err != nil {
		return err
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return err
	}
	delete(fields, "torch_dtype")
	delete(fields, "dtype")
	if text, err = json.MarshalIndent(fields, "", "  "); err != nil {
		return err
	}
	return files.Write(filepath.Join(dir, "config.json"), append(text, '\n'))
}

// ids are tokens by their numbers; one alone stands for a list.
type ids []int32

// UnmarshalJSON takes a list or a number.
func (l *ids) UnmarshalJSON(text []byte) error {
	if text[0] != '[' {
		text = slices.Concat([]byte("["), text, []byte("]"))
	}
	return json.Unmarshal(text, (*[]int32)(l))
}

// endings are the tokens that end a text, the one that is put behind each first: those that transformers' generate
// ends at, or where the model names none, what tokenizers call so.
func (t *tuner) endings() (list []int32, err error) {
	for _, name := range []string{"generation_config.json", "config.json"} {
		var says struct {
			Ends *ids `json:"eos_token_id"`
		}
		text, err := files.ReadIn(t.c.model, name, 1<<20)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err == nil {
			err = json.Unmarshal(text, &says)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Join(t.c.model, name), err)
		}
		if says.Ends != nil {
			return *says.Ends, nil
		}
	}
	for _, name := range []string{"<|endoftext|>", "</s>", "<|im_end|>", "<|eot_id|>", "<|end_of_text|>"} {
		if id, is := t.tok.ID(name); is {
			list = append(list, id)
		}
	}
	return list, nil
}

// kinds are what lines have.
var kinds = map[string]string{"completion": `{"prompt", "completion"}`, "chat": `{"messages"}`, "text": `{"text"}`}

// encoder makes tokens of a line.
func (t *tuner) encoder() (text.Encoder, error) {
	end := int32(-1)
	if len(t.ends) > 0 {
		end = t.ends[0]
	}
	switch t.c.kind {
	case "completion":
		return text.Completion(t.tok, end), nil
	case "text":
		return text.Field(t.tok, "text", end), nil
	case "chat":
		tmpl, err := chat.Read(t.c.model)
		if err != nil {
			return nil, err
		}
		return text.Chat(t.tok, tmpl), nil
	}
	return nil, fmt.Errorf("-kind %s: there are completion, chat and text", t.c.kind)
}
