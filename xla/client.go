package xla

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Options are a client's own: what its plugin knows. Values are bool, int, int64, float32, float64, string or []int64.
// For several ranks on one GPU, CUDA's and ROCm's want
//
//	xla.Options{"preallocate": false, "memory_fraction": 0.4}
//
// where preallocate is whether the client takes its part of the memory at once, and memory_fraction
// how much that is: 3/4 if nothing is said.
type Options map[string]any

// A Client is a plugin's use of one device.
type Client struct {
	p        *Plugin
	handle   uintptr
	device   uintptr
	hardware int
	platform string
	version  string
	name     string
	live     atomic.Int64 // buffers and programs

	mu     sync.RWMutex // calls that use the client hold it; Close has it to itself
	closed bool
}

// NewClient makes a client.
func (p *Plugin) NewClient(o Options) (*Client, error) {
	if p == nil {
		return nil, errors.New("xla: NewClient of no plugin: call Open")
	}
	names := slices.Sorted(maps.Keys(o))
	for _, name := range names {
		switch o[name].(type) {
		case bool, int, int64, float32, float64, string, []int64:
		default:
			return nil, fmt.Errorf("xla: NewClient: option %s is a %T: give a bool, int, float, string or []int64", name,
				o[name])
		}
	}
	c := &Client{p: p}
	if err := failure("client", p.path, c.open(names, o)); err != nil {
		return nil, err
	}
	return c, nil
}

// Plugin returns the client's plugin.
func (c *Client) Plugin() *Plugin { return c.p }

// Platform returns "cpu", "cuda", "rocm" or another name of the plugin's, in small letters.
func (c *Client) Platform() string { return c.platform }

// OnHost reports whether the device is the CPU, whose memory the host may touch.
func (c *Client) OnHost() bool { return c.platform == "cpu" }

// Device returns the number that packages cuda and rocm have for the device.
func (c *Client) Device() int { return c.hardware }

// String reads like: cuda (NVIDIA H100 80GB HBM3), PJRT 0.115.
func (c *Client) String() string {
	major, minor := c.p.Version()
	kind := ""
	if c.name != "" && !strings.EqualFold(c.name, c.platform) {
		kind = " (" + c.name + ")"
	}
	return fmt.Sprintf("%s%s, PJRT %d.%d", c.platform, kind, major, minor)
}

// PlatformVersion returns what the plugin says of itself.
func (c *Client) PlatformVersion() string { return c.version }

// Memory is what a client has of its device's memory, in bytes; 0 is what the plugin does not tell.
type Memory struct{ InUse, Peak, Limit int64 }

// Memory returns what the client has. The plugin for CPUs does not tell.
func (c *Client) Memory() (Memory, error) {
	if err := c.enter(); err != nil {
		return Memory{}, err
	}
	defer c.mu.RUnlock()
	m, said := memoryOf(c.p.api, c.device)
	return m, failure("memory", "", said)
}

// enter begins a call that uses c, and may make something of it: Close waits for c.mu.RUnlock, and
// sees what was made. It is an error if c was closed.
func (c *Client) enter() error {
	if c == nil {
		return fmt.Errorf("xla: no client: %w", ErrClosed)
	}
	c.mu.RLock()
	if err := c.gone(); err != nil {
		c.mu.RUnlock()
		return err
	}
	return nil
}

// gone is an error if c was closed. c.mu is held.
func (c *Client) gone() error {
	if c.closed {
		return fmt.Errorf("xla: the client of %s: %w", c.p.path, ErrClosed)
	}
	return nil
}

// Close ends the client. It refuses while buffers or programs of it are live.
func (c *Client) Close() error {
	if c == nil {
		return fmt.Errorf("xla: no client: %w", ErrClosed)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.gone(); err != nil {
		return err
	}
	if n := c.live.Load(); n > 0 {
		return fmt.Errorf("xla: the client of %s cannot be closed: %d of its buffers and programs were not freed", c.p.path,
			n)
	}
	c.closed = true
	return failure("close", "", destroyClient(c.p.api, c.handle))
}

// Named reports whether the device's name, as its maker has it, begins with s: "NVIDIA H100".
func (c *Client) Named(s string) bool { return strings.HasPrefix(c.name, s) }
