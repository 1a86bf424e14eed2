//go:build linux && race

package soak

const raceDetector = true
