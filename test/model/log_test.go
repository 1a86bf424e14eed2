package model

import (
	"testing"

	"github.com/goccl/goccl/test/model/explore"
)

func TestLog(t *testing.T) {
	explore.Sound(t, &logging{n: 3, slots: 2, events: 1, crashes: 2})
	if !testing.Short() {
		explore.Sound(t, &logging{n: 2, slots: 2, events: 3, crashes: 2})
	}
}

func TestLogFindsWhatIsPlanted(t *testing.T) {
	t.Run("more events than slots, and nobody waits", func(t *testing.T) {
		explore.Finds(t, &logging{n: 2, slots: 2, events: 2, overwrite: true}, "has never heard of event", 20)
	})
	t.Run("a writer that is killed before the stamp", func(t *testing.T) {
		explore.Finds(t, &logging{n: 2, slots: 2, events: 1, crashes: 1, trusting: true}, "for ever", 8)
	})
}
