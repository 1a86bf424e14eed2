//go:build race

package ccl

// raceEnabled makes the flight recorder take a lock that it can do without: see recorder.go.
const raceEnabled = true
