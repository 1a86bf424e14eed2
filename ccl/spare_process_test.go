package ccl_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
	"github.com/goccl/goccl/ccl/boot"
)

func init() { roles["spare"] = spareOf }

// spareOf is a worker or a spare. Each rank of the plan comes to its end as its letter says, by its rank in the job.
func spareOf(ctx context.Context, t *testing.T, plan string) {
	me, spares := os.Getenv("GOCCL_RANK"), 0
	fmt.Sscan(os.Getenv("GOCCL_SPARES"), &spares)
	how, after := byte(0), time.Duration(0)
	for one := range strings.SplitSeq(plan, ",") {
		if rank, us, _ := strings.Cut(one[1:], ":"); rank == me {
			n, _ := strconv.Atoi(us)
			how, after = one[0], time.Duration(n)*time.Microsecond
		}
	}
	dir, waiting := os.Getenv("CCL_TEST_DIR"), strings.Count(plan, "w")+strings.Count(plan, "t") // of spares that are lost as they wait, or tell of one
	begun := filepath.Join(dir, "begun")
	if how == 'w' { // as it waits
		go func() {
			until(t, "the others have not begun", func() bool { _, err := os.Stat(begun); return err == nil })
			killSelf()
		}()
	}
	c, err := ccl.Join(ctx, &ccl.Options{Log: slog.New(tellsIn{slog.NewTextHandler(os.Stderr, nil), dir})})
	if errors.Is(err, ccl.ErrUnused) {
		fmt.Printf("rank %s: unused\n", me)
		return
	}
	require.NoError(t, err)
	defer c.Close()
	if how == 'j' { // as it is restored
		time.AfterFunc(after, killSelf)
	}
	last, rounds := healed(ctx, t, c, 40, trouble{
		step: func(c *ccl.Comm, step int) {
			switch {
			case step == 30 && waiting > 0:
				assert.NoError(t, os.WriteFile(begun, nil, 0o600))
				until(t, "the loss of a spare is not heard of", func() bool { return c.Waiting() == spares-waiting && files(dir, "told-*") == waiting })
			case how == 'j', how == 'r' && c.Fresh() != nil:
				if time.Sleep(time.Millisecond); step > 35 { // where the timer is late
					killSelf()
				}
			case how == 'l' && step == 35: // later
				killSelf()
			case step != 10:
			case how == 'k': // in no call
				killSelf()
			case how == 'c': // in a call
				time.AfterFunc(after, killSelf)
			case strings.HasPrefix(plan, "c"): // in which it waits for the others
				time.Sleep(10 * time.Millisecond)
			}
		},
		replace: func() {
			if how == 'r' { // while another is replaced
				time.AfterFunc(after, killSelf)
			}
		},
	})
	all := members(t, last, last.Rank())
	fmt.Printf("rank %s: number %d of %v, replacements: %d\n", me, last.Rank(), all, rounds)
}

// tellsIn is a handler of the log, and has a file in dir for each spare whose loss was logged.
type tellsIn struct {
	slog.Handler
	dir string
}

func (h tellsIn) Handle(ctx context.Context, r slog.Record) error {
	err := h.Handler.Handle(ctx, r)
	if _, after, ok := strings.Cut(r.Message, "(world rank "); ok && strings.HasPrefix(r.Message, "ccl: spare ") {
		rank, _, _ := strings.Cut(after, ")")
		err = errors.Join(err, os.WriteFile(filepath.Join(h.dir, "told-"+rank), nil, 0o600))
	}
	return err
}

// Processes are killed at any point: before a call, in one, at once, in the replacement, as they are restored, while they wait. The
// job has all four numbers at the end, and every sum was exact.
func TestReplaceAfterKills(t *testing.T) {
	for _, tc := range []struct {
		spares int
		plan   string
		unused int
	}{
		{1, "k2", 0}, {1, "k0", 0}, {1, "c1:200", 0}, {1, "w4", 0}, {2, "w5", 1}, {2, "w4,w5", 0}, {2, "w4,l1", 0},
		{2, "k1,k3", 0}, {2, "k0,k2", 0}, {2, "k3", 1}, {2, "k2,j4:0", 0}, {2, "k2,j4:300", 0},
		{2, "k2,r0:0", 0}, {2, "k2,r0:1000", 0}, {2, "k1,r3:300", 0}, {2, "k1,r3:3000", 0}, {2, "k1,r0:8000", 0},
	} {
		for _, hosts := range []int{0, 2, 4} {
			if testing.Short() && hosts != 0 && tc.spares == 2 && !strings.Contains(tc.plan, "r0") {
				continue
			}
			t.Run(fmt.Sprintf("%s of 4+%d on %d hosts", tc.plan, tc.spares, max(hosts, 1)), func(t *testing.T) {
				text, err := spawned(t, 4+tc.spares, hosts, "spare", tc.plan, "CCL_TEST_DIR="+t.TempDir(), fmt.Sprint("GOCCL_SPARES=", tc.spares))
				var e *boot.ExitError
				require.ErrorAs(t, err, &e, text)
				for n := range 4 {
					require.Regexp(t, fmt.Sprintf(`rank \d: number %d of \[0 1 2 3\], replacements: \d`, n), text)
				}
				require.Equal(t, 4, strings.Count(text, ": number "), text)
				for _, one := range strings.Split(tc.plan, ",") { // no call fails for a spare: one rank of each host tells, of each
					if one[0] == 'w' {
						if !strings.Contains(tc.plan, "l") {
							require.Equal(t, 4, strings.Count(text, "replacements: 0"), text)
						}
						told := strings.Count(text, fmt.Sprintf("spare %d of %d (world rank %s) lost: ", one[1]-'3', tc.spares, one[1:]))
						require.GreaterOrEqual(t, told, 1, text)
						require.LessOrEqual(t, told, max(hosts, 1)+strings.Count(tc.plan, "w")-1, "a spare that is killed may just have told of the other: %s", text)
					}
				}
				require.Equal(t, tc.unused, strings.Count(text, ": unused"), text)
				require.Equal(t, tc.unused, e.Unused, "as the launcher has it: %s", text)
			})
		}
	}
}
