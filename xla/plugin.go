package xla

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/goccl/goccl/internal/dl"
	"github.com/goccl/goccl/internal/environ"
)

// A Plugin is an open plugin. It is never closed.
type Plugin struct {
	api          uintptr
	path         string
	major, minor int
}

// plugins are those that this process has opened, by handle: a plugin wants to be initialised once.
var plugins = struct {
	sync.Mutex
	by map[uintptr]*Plugin
}{by: map[uintptr]*Plugin{}}

// Available returns nil if this program can open plugins, and otherwise an *Unavailable with the
// reason. It does not look for one.
func Available() error { return built() }

// Open opens the plugin at path; "" is the file that GOCCL_XLA_PLUGIN names. Opened again, it is
// the same plugin. XLA logs to the standard error, errors that calls return included, unless
// TF_CPP_MIN_LOG_LEVEL says less; Open sets that to 3 if it is not set.
func Open(path string) (*Plugin, error) {
	if err := built(); err != nil {
		return nil, err
	}
	s := dl.Search{What: "the PJRT plugin", Names: []string{path},
		Advice: "give the path of a plugin, such as xla_cuda_plugin.so of `pip install jax-cuda13-plugin`"}
	if path == "" {
		if s.Env = environ.XLAPlugin.Name; environ.XLAPlugin.Get() == "" {
			return nil, unavailable("no plugin: give Open its path, or set %s to it: xla_cuda_plugin.so of `pip install jax-cuda13-plugin`, for example", environ.XLAPlugin.Name)
		}
	}
	if _, set := os.LookupEnv("TF_CPP_MIN_LOG_LEVEL"); !set {
		if err := os.Setenv("TF_CPP_MIN_LOG_LEVEL", "3"); err != nil {
			return nil, err
		}
	}
	so, err := s.Open()
	if err != nil {
		return nil, unavailable("%w", err)
	}
	get := so.Symbol("GetPjrtApi")
	if get == 0 {
		return nil, unavailable("%s is no PJRT plugin: it has no GetPjrtApi", so.Path())
	}
	plugins.Lock()
	defer plugins.Unlock()
	if p := plugins.by[so.Handle()]; p != nil {
		return p, nil
	}
	p := &Plugin{path: so.Path()}
	if err := failure("open", so.Path(), start(get, &p.api)); err != nil {
		return nil, &Unavailable{Reason: err.Error(), Err: err}
	}
	p.major, p.minor = version(p.api)
	plugins.by[so.Handle()] = p
	return p, nil
}

// Path returns the plugin's file.
func (p *Plugin) Path() string { return p.path }

// Version returns the version of PJRT that the plugin was built with: 0.115, for example.
func (p *Plugin) Version() (major, minor int) { return p.major, p.minor }

// CompileFor compiles text for a device that need not be here, and returns what memory the program
// takes. platform is "cuda" or "rocm", and target the text of XLA's GpuTargetConfigProto. Flags
// such as xla_dump_to show more of what was made.
func (p *Plugin) CompileFor(platform, target, text string, f Flags) (Stats, error) {
	if strings.ContainsRune(platform, 0) {
		return Stats{}, errors.New("xla: compile: the platform's name has a zero byte")
	}
	o, err := f.encode()
	if err != nil {
		return Stats{}, err
	}
	s, said := compileFor(p.api, platform, target, text, o)
	return s, failure("compile", fmt.Sprintf("%d bytes of text for a %s target", len(text), platform), said)
}
