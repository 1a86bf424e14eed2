package cudart

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// fetch is the directory with a runtime's headers.
func fetch(t *testing.T, name string) string {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" {
		t.Skip("hardware: the vendors' wheels that are pinned are for linux/amd64")
	}
	for _, need := range []struct{ command, packages string }{{"python3", "python3-pip"}, {"cc", "gcc libc6-dev"}} {
		if _, err := exec.LookPath(need.command); err != nil {
			t.Skipf("no %s (Debian: apt-get install %s)", need.command, need.packages)
		}
	}
	var stderr strings.Builder
	cmd := exec.Command("./fetch.sh", name)
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "fetch.sh %s: %s", name, &stderr)
	return strings.TrimSpace(string(out))
}
