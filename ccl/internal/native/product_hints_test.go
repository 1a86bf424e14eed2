//go:build (nccl || rccl) && cgo && linux

package native_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/ccltest"
	gpu "github.com/goccl/goccl/internal/gpu/gputest"
	"github.com/goccl/goccl/train/mesh"
)

// TestProductHints: a Comm's hints and its name reach the library, those of a part too, and what the library's version lacks is
// an error of all ranks that names one.
func TestProductHints(t *testing.T) {
	backends(t, func(t *testing.T, name string, _ *gpu.Runtime) {
		c := fakeOf(t, name)
		for _, job := range jobs {
			t.Run(job.name, func(t *testing.T) {
				o := &ccl.Options{Backend: name, Hints: ccl.Hints{MaxCTAs: 8, CTAPolicy: ccl.CTAPolicyEfficiency}}
				ccltest.Run(t, 3, func(t testing.TB, all *ccl.Comm) {
					ctx := t.Context()
					assert.Equal(t, "maxCTAs=8 CTAPolicy=1  commName=world", c.Config(all.Native()))
					part, err := all.Split(ctx, all.Rank()/2, 0)
					require.NoError(t, err)
					defer part.Close()
					assert.Equal(t, "maxCTAs=8 CTAPolicy=1  commName="+part.Name(), c.Config(part.Native()))
					tp, err := all.SplitWith(ctx, 0, 0, func(o *ccl.Options) { o.Name, o.Hints = "tp", ccl.Hints{Net: "Socket"} })
					require.NoError(t, err)
					defer tp.Close()
					assert.Equal(t, "netName=Socket commName=tp", c.Config(tp.Native()))
					_, err = all.SplitWith(ctx, 0, 0, func(o *ccl.Options) { o.Hints.MaxCTAs = 1 + all.Rank()/2 })
					assert.ErrorContains(t, err, "ranks 0 and 2, both of color 0, have set different Options.Hints")
					_, err = all.SplitWith(ctx, 0, 0, func(o *ccl.Options) {
						if all.Rank() == 1 {
							o.Hints = ccl.Hints{MinCTAs: 9, MaxCTAs: 8}
						}
					})
					assert.ErrorContains(t, err, "on rank 1: Options.Hints: min-ctas is 9, more than max-ctas, 8")
					assert.NoError(t, ccl.Barrier(ctx, all))
				}, append(job.opts, ccltest.With(*o))...)
			})
		}
	})
}

// TestProductMesh: the Comms of a mesh have LaunchOrder where the library has it, unless NewWith clears it. A version without is
// not asked for it. TestProductOlder is that.
func TestProductMesh(t *testing.T) {
	backends(t, func(t *testing.T, name string, _ *gpu.Runtime) {
		leaves(t, name)
		fake := fakeOf(t, name)
		ordered := ""
		if name == "nccl" && os.Getenv("FAKE_NCCL_VERSION") == "" {
			ordered = "launchOrderImplicit=1 "
		}
		ccltest.Run(t, 4, func(t testing.TB, all *ccl.Comm) {
			err := ccl.SupportsHints(all, ccl.Hints{LaunchOrder: true})
			assert.Equal(t, ordered != "", err == nil, "%v", err)
			if err != nil {
				assert.ErrorIs(t, err, ccl.ErrUnsupported)
			}
			assert.ErrorIs(t, ccl.SupportsHints(all, ccl.Hints{MinCTAs: 2, MaxCTAs: 1}), ccl.ErrArgument)
			for _, tc := range []struct {
				set  func(o *ccl.Options, dims ...string)
				want string
			}{
				{nil, ordered},
				{func(o *ccl.Options, _ ...string) { o.Hints.MaxCTAs = 3 }, "maxCTAs=3 " + ordered},
				{func(o *ccl.Options, _ ...string) { o.Hints.LaunchOrder = false }, ""},
			} {
				m, err := mesh.NewWith(t.Context(), all, tc.set, mesh.Dim{Name: "dp", Size: 2}, mesh.Dim{Name: "tp", Size: 2})
				require.NoError(t, err)
				both, err := m.Join(t.Context(), "dp", "tp")
				assert.NoError(t, err)
				for _, c := range []*ccl.Comm{m.Comm("dp"), m.Comm("tp"), both} {
					config, _, _ := strings.Cut(fake.Config(c.Native()), " commName")
					assert.Equal(t, strings.TrimSpace(tc.want), strings.TrimSpace(config), "%s", c.Name())
				}
				assert.NoError(t, m.Close())
			}
		}, ccltest.With(ccl.Options{Backend: name}))
	})
}

// TestProductHintsRefused: a policy that there is none of, and a number of CTAs that the library refuses, are an error of every rank;
// the parent of what was not made goes on.
func TestProductHintsRefused(t *testing.T) {
	backends(t, func(t *testing.T, name string, rt *gpu.Runtime) {
		leaves(t, name)
		o := ccl.Options{Backend: name, Hints: ccl.Hints{CTAPolicy: ccl.CTAPolicy(3)}}
		for rank, err := range job(t, 3, o, rt, func(context.Context, *on) error { return nil }) {
			e := failure(t, rank, err, ccl.ErrArgument)
			assert.Contains(t, e.Error(), fmt.Sprintf("rank %d: NewComm: Options.Hints: there is no CTAPolicy(3)", rank))
		}
		o = ccl.Options{Backend: name}
		for rank, err := range job(t, 3, o, rt, func(ctx context.Context, r *on) error {
			_, err := r.c.SplitWith(ctx, 0, 0, func(o *ccl.Options) { o.Hints.MaxCTAs = 65 }) // more than the library takes
			assert.NoError(t, r.sums(ctx, 1))
			return err
		}) {
			e := failure(t, rank, err, ccl.ErrBackend)
			assert.Contains(t, e.Error(), fmt.Sprintf("rank %d: Split", rank))
			assert.Contains(t, e.Error(), "max channels")
		}
	})
}
