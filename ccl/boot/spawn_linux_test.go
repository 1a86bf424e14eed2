package boot

import "testing"

// TestSpawnKilled kills Spawn's process in the way that it cannot notice.
func TestSpawnKilled(t *testing.T) {
	cmd, out := launch(t, "pid", "pid ")
	ranks := pids(t, out.String())
	cmd.Process.Kill()
	cmd.Wait()
	requireGone(t, ranks)
}
