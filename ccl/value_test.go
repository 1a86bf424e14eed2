package ccl_test

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/ccl"
)

// setting is a value as programs have them.
type setting struct {
	Name   string
	Rate   float64
	Labels map[int]string
	Next   *setting
	Any    any
	Raw    []byte
	Loss   *float64 // given, and 0
	hidden int
}

// closed is encoded only where nothing is in it; else it says why not.
type closed struct{ Why string }

func (c closed) GobEncode() ([]byte, error) {
	if c.Why != "" {
		return nil, errors.New(c.Why)
	}
	return nil, nil
}
func (c *closed) GobDecode([]byte) error { return nil }

// half can be encoded, and not be decoded.
type half struct{ Why string }

func (half) GobEncode() ([]byte, error) { return []byte{1}, nil }
func (*half) GobDecode([]byte) error    { return errors.New("no way back") }

// fragile panics.
type fragile struct{ X int }

func (fragile) GobEncode() ([]byte, error) { panic("my bug") }
func (*fragile) GobDecode([]byte) error    { return nil }

func init() { gob.Register(setting{}) }

func settingOf(rank int) setting {
	return setting{
		Name: fmt.Sprint("rank ", rank), Rate: math.Inf(1), Labels: map[int]string{rank: "here", -1: ""}, Raw: []byte{0, 255, byte(rank)},
		Next: &setting{Rate: 1e-300}, Any: int64(math.MaxInt64 - rank), Loss: new(float64),
	}
}

// Every way in which values go from rank to rank, over every transport: exact, in the order of the ranks, the same on all.
func TestValues(t *testing.T) {
	for _, n := range []int{1, 3} {
		inWorlds(t, n, func(t testing.TB, c *ccl.Comm) {
			ctx, me, last := t.Context(), c.Rank(), c.Size()-1
			var all []setting
			for r := range c.Size() {
				all = append(all, settingOf(r))
			}
			one, err := ccl.BroadcastValue(ctx, c, settingOf(me), last)
			require.NoError(t, err)
			require.Equal(t, all[last], one)
			every, err := ccl.AllGatherValues(ctx, c, settingOf(me))
			require.NoError(t, err)
			require.Equal(t, all, every)
			list, err := ccl.GatherValues(ctx, c, settingOf(me), last)
			require.NoError(t, err)
			if me != last {
				require.Nil(t, list)
			} else {
				require.Equal(t, all, list)
			}
			var give []setting
			if me == last {
				for r := range c.Size() {
					give = append(give, settingOf(r))
				}
			}
			own, err := ccl.ScatterValues(ctx, c, give, last)
			require.NoError(t, err)
			require.Equal(t, all[me], own)
			if c.Size() == 1 {
				return
			}
			switch me { // around the circle
			case 0:
				require.NoError(t, ccl.SendValue(ctx, c, settingOf(0), 1))
				own, err = ccl.RecvValue[setting](ctx, c, last)
			default:
				own, err = ccl.RecvValue[setting](ctx, c, me-1)
				require.NoError(t, ccl.SendValue(ctx, c, settingOf(me), (me+1)%c.Size()))
			}
			require.NoError(t, err)
			require.Equal(t, all[(me+last)%c.Size()], own)
		})
	}
}

// What is given arrives, as internal/value's tests have it, by every call.
func TestValuesKeepPointersToZero(t *testing.T) {
	type run struct {
		Rate  *float64
		Zero  float64
		Stop  *bool
		Given []int
	}
	negative := math.Copysign(0, -1)
	v := run{Rate: &negative, Zero: negative, Stop: new(bool), Given: []int{}}
	inWorlds(t, 2, func(t testing.TB, c *ccl.Comm) {
		ctx, me := t.Context(), c.Rank()
		is := func(got run, err error) {
			require.NoError(t, err)
			require.True(t, reflect.DeepEqual(v, got), "%#v", got)
			require.True(t, math.Signbit(got.Zero) && math.Signbit(*got.Rate))
		}
		is(ccl.BroadcastValue(ctx, c, v, 1))
		p, err := ccl.BroadcastValue(ctx, c, new(int), 0)
		require.NoError(t, err)
		require.Equal(t, new(int), p)
		every, err := ccl.AllGatherValues(ctx, c, v)
		for _, got := range every {
			is(got, err)
		}
		list, err := ccl.GatherValues(ctx, c, v, 1)
		require.NoError(t, err)
		require.Len(t, list, 2*me)
		for _, got := range list {
			is(got, nil)
		}
		is(ccl.ScatterValues(ctx, c, []run{v, v}, 0))
		if me == 0 {
			require.NoError(t, ccl.SendValue(ctx, c, v, 1))
		} else {
			is(ccl.RecvValue[run](ctx, c, 0))
		}
	})
}

// roundTrip checks that a value comes back as it is.
func roundTrip[V any](t *testing.T, v V) {
	t.Helper()
	data, err := ccl.EncodeValue(v)
	require.NoError(t, err)
	back, err := ccl.DecodeValue[V](data)
	require.NoError(t, err)
	require.Equal(t, v, back)
}

// What other encodings lose.
func TestValueRoundTrips(t *testing.T) {
	roundTrip(t, 0)
	roundTrip(t, "")
	roundTrip(t, true)
	roundTrip[any](t, nil)
	roundTrip[any](t, int64(math.MinInt64))
	roundTrip[*setting](t, nil)
	roundTrip[error](t, nil)
	roundTrip(t, []string{"a", ""})
	roundTrip(t, map[[2]int]float32{{1, 2}: float32(math.Inf(-1))})
	roundTrip(t, strings.Repeat("long", 1<<18))
	data, err := ccl.EncodeValue(math.NaN())
	require.NoError(t, err)
	nan, err := ccl.DecodeValue[float64](data)
	require.NoError(t, err)
	require.Equal(t, math.Float64bits(math.NaN()), math.Float64bits(nan))
	_, err = ccl.DecodeValue[int](data)
	require.EqualError(t, err, `it is a "float64"`)
}

// refusals is every call in which one rank has a value that cannot be encoded, and of which rank it is: root gives it, but
// in gathers.
func refusals[V any](bad, good V) map[string]func(ctx context.Context, c *ccl.Comm, r int) error {
	mine := func(c *ccl.Comm, r int) V {
		if c.Rank() == r {
			return bad
		}
		return good
	}
	return map[string]func(ctx context.Context, c *ccl.Comm, r int) error{
		"BroadcastValue": func(ctx context.Context, c *ccl.Comm, r int) error {
			_, err := ccl.BroadcastValue(ctx, c, mine(c, r), r)
			return err
		},
		"AllGatherValues": func(ctx context.Context, c *ccl.Comm, r int) error {
			_, err := ccl.AllGatherValues(ctx, c, mine(c, r))
			return err
		},
		"GatherValues": func(ctx context.Context, c *ccl.Comm, r int) error {
			_, err := ccl.GatherValues(ctx, c, mine(c, r), 0)
			return err
		},
		"ScatterValues": func(ctx context.Context, c *ccl.Comm, r int) error {
			_, err := ccl.ScatterValues(ctx, c, []V{good, bad, good}[:c.Size()], r)
			return err
		},
		"SendValue": func(ctx context.Context, c *ccl.Comm, r int) error {
			if c.Rank() == r {
				return ccl.SendValue(ctx, c, bad, 0)
			} else if c.Rank() == 0 {
				_, err := ccl.RecvValue[V](ctx, c, r)
				return err
			}
			return &ccl.Error{Code: ccl.ErrArgument, Peer: r, Err: errors.New("of no part in it")}
		},
	}
}

// checkRefusals checks that all ranks get one error, which says why, and that the Comm is good afterwards.
func checkRefusals[V any](t *testing.T, bad, good V, why string) {
	everywhere(t, 3, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		for _, name := range []string{"BroadcastValue", "AllGatherValues", "GatherValues", "ScatterValues", "SendValue"} {
			e := wants(t, refusals(bad, good)[name](ctx, c, 2), ccl.ErrArgument)
			assert.Equal(t, 2, e.Peer, name)
			if assert.Error(t, e.Err) && (name != "SendValue" || c.Rank() != 1) {
				assert.Contains(t, e.Err.Error(), why, name)
				assert.True(t, strings.HasPrefix(e.Err.Error(), "rank 2: a "), e.Err.Error())
			}
			works(ctx, t, c)
		}
	})
}

func TestValueThatCannotBeEncoded(t *testing.T) {
	type unregistered struct{ X int }
	for name, check := range map[string]func(t *testing.T){
		"no encoding": func(t *testing.T) { checkRefusals(t, closed{"it is a secret"}, closed{}, "it is a secret") },
		"not exported": func(t *testing.T) {
			checkRefusals(t, setting{Next: &setting{hidden: 1}}, setting{}, "at .Next.hidden: it is not exported, and not zero")
		},
		"a circle":        func(t *testing.T) { checkRefusals(t, circle(), &setting{}, "at .Next: it leads back to itself") },
		"not registered":  func(t *testing.T) { checkRefusals[any](t, unregistered{1}, 1, "type not registered") },
		"a panic":         func(t *testing.T) { checkRefusals[any](t, fragile{1}, 1, "") },
		"no way back":     func(t *testing.T) { checkRefusals[any](t, half{"x"}, 1, "") },
		"a function":      func(t *testing.T) { checkRefusals[any](t, func() {}, 1, "cannot be encoded") },
		"a long reason":   func(t *testing.T) { checkRefusals(t, closed{strings.Repeat("é", 5000)}, closed{}, "éé") },
		"nothing in it":   func(t *testing.T) { checkRefusals[any](t, struct{ x int }{1}, 1, "cannot be encoded") },
		"a panic of kind": func(t *testing.T) { checkRefusals(t, encoder{fragile{1}}, encoder{}, "my bug") },
		"half of a kind":  func(t *testing.T) { checkRefusals(t, encoder{half{"x"}}, encoder{}, "no way back") },
	} {
		t.Run(name, check)
	}
}

func circle() *setting {
	s := &setting{}
	s.Next = s
	return s
}

// encoder has a field whose type the program has registered.
type encoder struct{ Of any }

func init() {
	gob.Register(fragile{})
	gob.Register(half{})
}

// The number of values is wrong on root, the root is none, the Comm is none: all ranks get an error, and none waits.
func TestValueArguments(t *testing.T) {
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		_, err := ccl.ScatterValues(ctx, c, []string{"one"}, 0)
		e := wants(t, err, ccl.ErrArgument)
		assert.ErrorContains(t, e, "rank 0: 1 values for 2 ranks")
		for _, root := range []int{-1, 2} {
			_, err := ccl.BroadcastValue(ctx, c, 1, root)
			assert.ErrorContains(t, wants(t, err, ccl.ErrArgument), fmt.Sprintf("root or peer is %d; the ranks are 0 to 1", root))
			_, err = ccl.GatherValues(ctx, c, 1, root)
			wants(t, err, ccl.ErrArgument)
			_, err = ccl.ScatterValues(ctx, c, []int{1, 2}, root)
			wants(t, err, ccl.ErrArgument)
			wants(t, ccl.SendValue(ctx, c, 1, root), ccl.ErrArgument)
			_, err = ccl.RecvValue[int](ctx, c, root)
			wants(t, err, ccl.ErrArgument)
		}
		var none context.Context
		_, err = ccl.AllGatherValues(none, c, 1)
		wants(t, err, ccl.ErrArgument)
		works(ctx, t, c)
	})
	_, err := ccl.BroadcastValue(t.Context(), nil, 1, 0)
	wants(t, err, ccl.ErrArgument)
	_, err = ccl.AllGatherValues(t.Context(), nil, 1)
	wants(t, err, ccl.ErrArgument)
}

// A rank that cannot read what it gets aborts the Comm, with the reason.
func TestValueOfAnotherType(t *testing.T) {
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		if c.Rank() == 0 {
			_, err := ccl.BroadcastValue(ctx, c, "text", 0)
			assert.NoError(t, err)
			err = ccl.Barrier(ctx, c)
			wants(t, err, ccl.ErrAborted)
			assert.ErrorContains(t, err, "what it has sent is no int")
			return
		}
		_, err := ccl.BroadcastValue(ctx, c, 0, 0)
		e := wants(t, err, ccl.ErrMismatch)
		assert.Equal(t, 0, e.Peer)
		assert.ErrorContains(t, err, "what it has sent is no int")
	})
}

// Lengths that no value has are refused before memory is allocated for them.
func TestValueSizes(t *testing.T) {
	heads, reason := ccl.PackText([]string{"a", "bc"}, 2, ccl.MaxValue)
	require.Empty(t, reason)
	value, length := heads[0], heads[1]
	_, reason = ccl.PackText([]string{"a", "bc"}, 2, int(length))
	require.Equal(t, fmt.Sprintf("a string is too large: MaxValue is %d bytes, encoded, of which the values before it take %[1]d", length), reason)
	_, reason = ccl.PackText([]string{"abcd", "bc"}, 2, int(length))
	require.Equal(t, fmt.Sprintf("a string is too large: MaxValue is %d bytes, encoded", length), reason)
	_, reason = ccl.PackText([]string{"a"}, 2, ccl.MaxValue)
	require.Equal(t, "1 values for 2 ranks", reason)
	heads, _ = ccl.PackText(nil, 1, ccl.MaxValue)
	refusal := heads[0]

	for _, tc := range []struct {
		heads   []uint64
		lengths []int
		refused int
		err     string
	}{
		{[]uint64{value, 3, value, 0}, []int{3, 0}, -1, ""},
		{[]uint64{value, 3, refusal, 9}, []int{3, 9}, 1, ""},
		{[]uint64{refusal, 1024, refusal, 9}, []int{1024, 9}, 0, ""},
		{[]uint64{value, 3, refusal, 1025}, nil, 1, "no value"},
		{[]uint64{value, 101}, nil, 0, "no value"},
		{[]uint64{value, math.MaxUint64}, nil, 0, "no value"},
		{[]uint64{0, 1}, nil, 0, "no value"},
		{[]uint64{value, 100, value, 1}, nil, -1, "101 bytes, encoded: MaxValue is 100"},
		{[]uint64{value, 100, refusal, 1}, []int{100, 1}, 1, ""},
	} {
		lengths, refused, err := ccl.ValueSizes(tc.heads, 100)
		assert.Equal(t, tc.lengths, lengths, "%v", tc.heads)
		assert.Equal(t, tc.refused, refused, "%v", tc.heads)
		if tc.err == "" {
			assert.NoError(t, err)
		} else {
			assert.ErrorContains(t, err, tc.err)
		}
	}
	// Another program sends two words that are no head: the value's receiver says so, and allocates nothing for them.
	everywhere(t, 2, nil, func(ctx context.Context, t *testing.T, c *ccl.Comm) {
		if c.Rank() == 0 {
			assert.NoError(t, ccl.Send(ctx, c, []uint64{value, 1 << 60}, 1))
			return
		}
		_, err := ccl.RecvValue[string](ctx, c, 0)
		assert.ErrorContains(t, wants(t, err, ccl.ErrMismatch), "what it has sent is no value")
	})
}

// Whatever bytes come, a value or an error is what they are.
func FuzzValue(f *testing.F) {
	for _, v := range []setting{{}, settingOf(1)} {
		data, err := ccl.EncodeValue(v)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v, err := ccl.DecodeValue[setting](data)
		if err == nil {
			require.Zero(t, v.hidden)
		}
	})
}
