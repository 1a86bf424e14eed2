//go:build !race

package ccl_test

const raceDetector = false
