package boot

import "testing"

// What a rank has started, such as the program that a shell runs, ends with Spawn's process too.
func TestSpawnKilledWrapped(t *testing.T) {
	cmd, out := launch(t, "sleeper", "pid ")
	wrapped := pids(t, out.String())
	cmd.Process.Kill()
	cmd.Wait()
	requireGone(t, wrapped)
}

// TestSpawnKilled kills Spawn's process in the way that it cannot notice.
func TestSpawnKilled(t *testing.T) {
	cmd, out := launch(t, "pid", "pid ")
	ranks := pids(t, out.String())
	cmd.Process.Kill()
	cmd.Wait()
	requireGone(t, ranks)
}
