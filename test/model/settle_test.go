package model

import "testing"

func TestSettle(t *testing.T) {
	explored(t, &settling{n: 3, proposers: 2, crashes: 1})
	explored(t, &settling{n: 3, proposers: 1, breaks: 1})
	if testing.Short() {
		return
	}
	explored(t, &settling{n: 3, proposers: 2, crashes: 2})
}

func TestSettleFindsWhatIsPlanted(t *testing.T) {
	t.Run("a host believes its own proposal at once", func(t *testing.T) {
		found(t, &settling{n: 3, proposers: 2, eager: true}, "believe different causes", 20)
	})
}
