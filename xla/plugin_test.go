//go:build xla && cgo && linux

package xla_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/dl"
	"github.com/goccl/goccl/internal/xlatest"
	"github.com/goccl/goccl/xla"
)

// built is a plugin of testdata/plugin.c.
func built(t *testing.T, defines ...string) string {
	t.Helper()
	if _, err := exec.LookPath("cc"); err != nil {
		t.Skip("no cc (Debian: apt-get install gcc libc6-dev)")
	}
	file := filepath.Join(t.TempDir(), "plugin.so")
	out, err := exec.Command("cc", append([]string{"-std=gnu11", "-Wall", "-Werror", "-shared", "-fPIC", "-o", file, "testdata/plugin.c"}, defines...)...).CombinedOutput()
	require.NoError(t, err, string(out))
	return file
}

func TestOpenErrors(t *testing.T) {
	require.NoError(t, xla.Available())
	none, err := dl.Search{Names: []string{"libm.so.6"}}.Open()
	require.NoError(t, err)
	text := filepath.Join(t.TempDir(), "plugin.so")
	require.NoError(t, os.WriteFile(text, []byte("no library"), 0o600))
	for _, tc := range []struct{ name, path, env, want string }{
		{"none", "", "", "xla: no plugin: give Open its path, or set GOCCL_XLA_PLUGIN to it"},
		{"not there", "/nonexistent/plugin.so", "", "the PJRT plugin cannot be loaded: /nonexistent/plugin.so: cannot open shared object file"},
		{"by the variable", "", "/nonexistent/plugin.so", "GOCCL_XLA_PLUGIN=/nonexistent/plugin.so"},
		{"no library", text, "", "file too short"},
		{"another library", none.Path(), "", "is no PJRT plugin: it has no GetPjrtApi"},
		{"too old", built(t, "-DFUNCTIONS=90"), "", "its PJRT is 0.69 with 90 functions; 0.70 with 97 or newer is needed"},
		{"of a later design", built(t, "-DMAJOR=1"), "", "its PJRT is 1.69 with 120 functions"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Setenv("GOCCL_XLA_PLUGIN", tc.env)
			_, err := xla.Open(tc.path)
			require.ErrorContains(t, err, tc.want)
			var u *xla.Unavailable
			require.ErrorAs(t, err, &u)
		})
	}
}

func TestOpen(t *testing.T) {
	path := xlatest.Path(t)
	p, err := xla.Open(path)
	require.NoError(t, err)
	again, err := xla.Open(path)
	require.NoError(t, err)
	require.Same(t, p, again)
	major, minor := p.Version()
	require.Zero(t, major)
	require.GreaterOrEqual(t, minor, 70)
	require.Equal(t, filepath.Base(path), filepath.Base(p.Path()))
}

func TestClientOptions(t *testing.T) {
	p, err := xla.Open(xlatest.Path(t))
	require.NoError(t, err)
	_, err = (*xla.Plugin)(nil).NewClient(nil)
	require.ErrorContains(t, err, "xla: NewClient of no plugin")
	for _, tc := range []struct {
		options xla.Options
		want    string
	}{
		{xla.Options{"cpu_device_count": []string{"1"}}, "xla: NewClient: option cpu_device_count is a []string"},
		{xla.Options{"cpu_device_count": "one"}, "xla: client: "},
		{xla.Options{"no_such_option": 1}, "no_such_option"},
	} {
		_, err := p.NewClient(tc.options)
		require.ErrorContains(t, err, tc.want)
	}
	for _, o := range []xla.Options{nil, {"cpu_device_count": 2}, {"cpu_device_count": int64(1)}} {
		c, err := p.NewClient(o)
		require.NoError(t, err)
		require.Equal(t, "cpu", c.Platform())
		require.True(t, c.OnHost())
		require.Zero(t, c.Device())
		require.Contains(t, c.String(), "cpu, PJRT 0.")
		require.Same(t, p, c.Plugin())
		require.NoError(t, c.Close())
		require.ErrorIs(t, c.Close(), xla.ErrClosed)
		_, err = xla.Put(c, []float32{1}, 1)
		require.ErrorIs(t, err, xla.ErrClosed)
		_, err = c.Compile("", nil)
		require.ErrorIs(t, err, xla.ErrClosed)
		_, err = c.Load(nil)
		require.ErrorIs(t, err, xla.ErrClosed)
		_, err = c.Memory()
		require.ErrorIs(t, err, xla.ErrClosed)
	}
}
