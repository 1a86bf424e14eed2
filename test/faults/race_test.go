//go:build linux && race

package faults

const raceDetector = true
