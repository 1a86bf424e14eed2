//go:build race

package harness

const raceDetector = true
