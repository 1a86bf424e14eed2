// Package xlatest finds the plugin that the tests of package xla and of what is built on it run on.
package xlatest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/goccl/goccl/xla"
)

// cached is where test/vendor/pjrt/fetch.sh puts XLA's plugin for CPUs.
const cached = "pjrt/cpu-0.11.2/pjrt_c_api_cpu_plugin.so"

// Path is the plugin's file: GOCCL_XLA_PLUGIN's, or the one in the cache. Without one, t is skipped, or fails under
// GOCCL_REQUIRE=all.
func Path(t testing.TB) string {
	t.Helper()
	if s := os.Getenv("GOCCL_XLA_PLUGIN"); s != "" {
		return s
	}
	cache := os.Getenv("GOCCL_CACHE")
	if cache == "" {
		if dir, err := os.UserCacheDir(); err == nil {
			cache = filepath.Join(dir, "goccl")
		}
	}
	path := filepath.Join(cache, cached)
	if _, err := os.Stat(path); err == nil {
		return path
	}
	const missing = "no plugin of XLA's here: run test/vendor/pjrt/fetch.sh cpu-0.11.2, or set GOCCL_XLA_PLUGIN"
	if os.Getenv("GOCCL_REQUIRE") == "all" {
		t.Fatal(missing)
	}
	t.Skip(missing)
	return ""
}

// Client is a client of the plugin's with one device, closed at the end of the test, which fails if
// something of it is live then.
func Client(t testing.TB) *xla.Client {
	t.Helper()
	p, err := xla.Open(Path(t))
	if err != nil {
		t.Fatal(err)
	}
	c, err := p.NewClient(xla.Options{"cpu_device_count": 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}
