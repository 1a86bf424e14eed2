package boot

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/auth"
)

// configIn is a rank of a job on several hosts whose launcher gives no secret, and whose hosts share dir.
func configIn(dir, job string, rank, size int) *joinConfig {
	m := &joinConfig{job: job, rank: rank, size: size, hostID: string(rune('a' + rank))}
	m.derived([]string{"localhost"}, 0)
	m.keepSecretIn(dir)
	return m
}

func leftIn(t *testing.T, dir string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, ".goccl-*"))
	require.NoError(t, err)
	return names
}

// R8: the ranks find the secret that rank 0 has left, and nothing stays behind; what an earlier job has left is
// replaced.
func TestR8SecretIsLeftInAFile(t *testing.T) {
	noLeaks(t)
	dir := t.TempDir()
	ctx := within(t, long)
	stale := configIn(dir, "7.0", 0, 3)
	_, err := stale.find()
	require.ErrorContains(t, err, "rank 0 has not written the job's secret")
	require.Empty(t, leftIn(t, dir))
	l, old, err := stale.listen(ctx) // and dies
	require.NoError(t, err)
	l.Close()
	require.Len(t, leftIn(t, dir), 1)
	info, err := os.Stat(leftIn(t, dir)[0])
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode().Perm())
	p, err := stale.find()
	require.NoError(t, err)
	require.Equal(t, old, p.secret)

	boots := joined(t, 3, func(r int) (*Boot, error) { return configIn(dir, "7.0", r, 3).join(ctx) })
	secret := boots[0].Secret()
	require.Len(t, secret, 32)
	require.NotEqual(t, old, secret)
	for _, b := range boots {
		require.Equal(t, secret, b.Secret())
	}
	swap(t, boots)
	require.Empty(t, leftIn(t, dir))
}

// A file that others could have written, or that holds no secret, is not believed.
func TestR8SecretFileOfOthersIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(path, []byte(hex.EncodeToString(auth.NewSecret())), 0o644))
	_, err := readSecretFile(path)
	require.ErrorContains(t, err, "others can read it")
	require.NoError(t, os.Chmod(path, 0o600))
	_, err = readSecretFile(path)
	require.NoError(t, err)
	for _, text := range []string{"", "00", "no hex at all, but long enough to be one"} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		_, err = readSecretFile(path)
		require.ErrorContains(t, err, "holds no secret")
	}
}

// R8's order: what the launcher or the user gives goes before a file, a file before none.
func TestR8OrderOfSecrets(t *testing.T) {
	shared := t.TempDir()
	slurm := map[string]string{"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2", "SLURM_STEP_ID": "0", "SLURM_JOB_ID": "7",
		"SLURM_NODEID": "1", "SLURM_STEP_NUM_NODES": "2", "SLURM_STEP_TASKS_PER_NODE": "1(x2)", "SLURM_STEP_NODELIST": "localhost,n2", "HOME": shared}
	file := filepath.Join(t.TempDir(), "own")
	require.NoError(t, os.WriteFile(file, []byte("from a file of mine"), 0o600))
	for _, tc := range []struct {
		name   string
		set    []string
		shared bool
		secret string
		made   bool
		err    string
	}{
		{"a file goes first", []string{"GOCCL_SECRET_FILE=" + file, "GOCCL_SECRET=from a variable of mine"}, true, "from a file of mine", false, ""},
		{"then the variable", []string{"GOCCL_SECRET=from a variable of mine"}, true, "from a variable of mine", false, ""},
		{"then Cray's", []string{"PMI_SHARED_SECRET=123", "PMI_CONTROL_PORT=1"}, true, "", false, ""},
		{"then a shared directory", nil, true, "", true, ""},
		{"then a shared store", []string{"GOCCL_STORE=" + shared}, false, "", true, ""},
		{"then none", nil, false, "", false, ""},
		{"which can be refused", []string{"GOCCL_REQUIRE_SECRET=1"}, false, "", false, "GOCCL_REQUIRE_SECRET=1, but the job has no secret"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			env := slurm
			for _, s := range tc.set {
				env = with(env, s)
			}
			v := &vars{getenv: func(n string) string { return env[n] }, environ: tc.set, readFile: os.ReadFile,
				shared: func(dir string) bool { return tc.shared && dir == shared }}
			l, err := detect(v)
			require.NoError(t, err)
			m := &joinConfig{job: l.Job, rank: l.Rank, size: l.Size}
			err = m.prepare(within(t, long), v, l)
			if tc.err != "" {
				require.ErrorContains(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.made, m.made)
			if tc.secret != "" || tc.made || tc.name == "then none" {
				require.Equal(t, tc.secret, string(m.secret.Bytes()))
			} else {
				require.Len(t, m.secret.Bytes(), 32)
			}
		})
	}
}

func FuzzSecretFile(f *testing.F) {
	f.Add([]byte(hex.EncodeToString(make([]byte, 32))))
	f.Add([]byte(" \n00"))
	path := filepath.Join(f.TempDir(), "secret")
	f.Fuzz(func(t *testing.T, text []byte) {
		if os.WriteFile(path, text, 0o600) != nil {
			t.Skip()
		}
		secret, err := readSecretFile(path)
		if n := len(secret.Bytes()); (err == nil) != secret.Known() || n > 1<<10 {
			t.Fatalf("%d bytes, %v", n, err)
		}
	})
}
