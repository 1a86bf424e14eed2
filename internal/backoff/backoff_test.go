package backoff

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestSleep(t *testing.T) {
	const us = time.Microsecond
	for _, tc := range []struct {
		first, most time.Duration
		want        []time.Duration
	}{
		{us, 8 * us, []time.Duration{us, 2 * us, 4 * us, 8 * us, 8 * us}},
		{20 * us, 50 * us, []time.Duration{20 * us, 40 * us, 50 * us, 50 * us}},
		{5 * us, 5 * us, []time.Duration{5 * us, 5 * us}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := Sleep{First: tc.first, Most: tc.most}
			for range 2 {
				for i, want := range tc.want {
					began := time.Now()
					s.Next()
					require.Equal(t, want, time.Since(began), "sleep %d of %v to %v", i, tc.first, tc.most)
				}
				s.Reset()
			}
		})
	}
}
