package boot

import "testing"

// TestSpawnKilled kills Spawn's process in the way that it cannot notice. What a rank has started,
// such as the program that a shell runs, ends as the ranks do.
func TestSpawnKilled(t *testing.T) {
	for _, role := range []string{"pid", "sleeper"} {
		cmd, out := launch(t, role, "pid ")
		ranks := pids(t, out.String())
		cmd.Process.Kill()
		cmd.Wait()
		requireGone(t, ranks)
	}
}
