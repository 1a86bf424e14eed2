package ccl_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

func TestParseHints(t *testing.T) {
	for _, tc := range []struct {
		text string
		want ccl.Hints
		err  string
	}{
		{"min-ctas=4", ccl.Hints{MinCTAs: 4}, ""},
		{"min-ctas=4,max-ctas=16,traffic-class=3,cta-policy=zero,net=AWS Libfabric",
			ccl.Hints{MinCTAs: 4, MaxCTAs: 16, CTAPolicy: ccl.CTAPolicyZero, TrafficClass: 3, Net: "AWS Libfabric"}, ""},
		{"cta-policy=default", ccl.Hints{}, ""},
		{"launch-order=1,net=IB", ccl.Hints{LaunchOrder: true, Net: "IB"}, ""},
		{"launch-order=0", ccl.Hints{}, ""},
		{"launch-order=yes", ccl.Hints{}, `"launch-order=yes": launch-order is 0 or 1`},
		{"", ccl.Hints{}, `"": a hint is min-ctas=N, max-ctas=N, cta-policy=NAME, traffic-class=N, launch-order=1 or net=NAME`},
		{"ctas=4", ccl.Hints{}, `"ctas=4": a hint is min-ctas=N, max-ctas=N, cta-policy=NAME, traffic-class=N, launch-order=1 or net=NAME`},
		{"max-ctas=many", ccl.Hints{}, `"max-ctas=many": max-ctas is a whole number`},
		{"max-ctas=-1", ccl.Hints{}, "max-ctas is -1: it must not be negative"},
		{"min-ctas=9,max-ctas=8", ccl.Hints{}, "min-ctas is 9, more than max-ctas, 8"},
		{"cta-policy=1", ccl.Hints{}, `"cta-policy=1": a policy is default, efficiency, zero`},
		{"net=a\x00b", ccl.Hints{}, `net is "a\x00b": no network plugin has such a name`},
	} {
		got, err := ccl.ParseHints(tc.text)
		if tc.err != "" {
			assert.EqualError(t, err, "ccl: ParseHints: "+tc.err)
			assert.ErrorIs(t, err, ccl.ErrArgument)
			var e *ccl.Error
			assert.ErrorAs(t, err, &e)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, tc.want, got)
		if got != (ccl.Hints{}) {
			assert.Equal(t, tc.text, got.String())
		}
	}
	assert.Equal(t, "CTAPolicy(9)", ccl.CTAPolicy(9).String())
}

func FuzzParseHints(f *testing.F) {
	f.Add("min-ctas=4,max-ctas=16,traffic-class=3,cta-policy=zero,net=IB")
	f.Add("net==,=")
	f.Fuzz(func(t *testing.T, s string) {
		h, err := ccl.ParseHints(s)
		if err != nil || h == (ccl.Hints{}) {
			return
		}
		again, err := ccl.ParseHints(h.String())
		require.NoError(t, err)
		require.Equal(t, h, again)
	})
}

// The CPU engine has nothing to tune so, and says it, before anything is made of a Comm or a part of it.
func TestHintsRefused(t *testing.T) {
	ctx := context.Background()
	_, err := ccl.NewComm(ctx, boot.Local(1)[0], &ccl.Options{Hints: ccl.Hints{MaxCTAs: 8}})
	require.ErrorIs(t, err, ccl.ErrUnsupported)
	require.ErrorContains(t, err, "Options.Hints: the backend cpu takes no hints, but is given max-ctas=8")
	_, err = ccl.NewComm(ctx, boot.Local(1)[0], &ccl.Options{Hints: ccl.Hints{MinCTAs: -8}})
	require.ErrorIs(t, err, ccl.ErrArgument)
	require.ErrorContains(t, err, "Options.Hints: min-ctas is -8")
	_, err = ccl.NewComm(ctx, boot.Local(1)[0], &ccl.Options{Hints: ccl.Hints{CTAPolicy: 3}})
	require.ErrorContains(t, err, "there is no CTAPolicy(3)")

	everywhere(t, 3, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		_, err := c.SplitWith(ctx, 0, 0, func(o *ccl.Options) { o.Hints.Net = "IB" })
		assert.ErrorContains(t, err, "on rank 0: Options.Hints: the backend cpu takes no hints, but is given net=IB")
		works(ctx, t, c)
	})
}

func ExampleParseHints() {
	h, err := ccl.ParseHints("max-ctas=8,cta-policy=efficiency")
	fmt.Println(h.MaxCTAs, h.CTAPolicy, err)
	fmt.Println(ccl.Options{Hints: h}.Hints)
	// Output:
	// 8 efficiency <nil>
	// max-ctas=8,cta-policy=efficiency
}
