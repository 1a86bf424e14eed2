//go:build xla && cgo && linux

package xla_test

import (
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/xlatest"
	"github.com/goccl/goccl/xla"
	"github.com/goccl/goccl/xla/hlo"
)

// compiled is a program of c's, freed at the end.
func compiled(t testing.TB, c *xla.Client, write func(f *hlo.Func) []*hlo.Value) *xla.Program {
	t.Helper()
	var f hlo.Func
	text, err := f.Text("test", write(&f)...)
	require.NoError(t, err)
	p, err := c.Compile(text, nil)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Free()) })
	return p
}

func put(t testing.TB, c *xla.Client, x []float32, dims ...int) *xla.Buffer {
	t.Helper()
	b, err := xla.Put(c, x, dims...)
	require.NoError(t, err)
	return b
}

func get(t testing.TB, b *xla.Buffer) []float32 {
	t.Helper()
	x := make([]float32, b.Len())
	require.NoError(t, xla.Get(b, x))
	return x
}

// increment adds 1 to an argument whose memory becomes the result's.
func increment(f *hlo.Func) []*hlo.Value {
	return []*hlo.Value{f.Donated(0, hlo.F32, 4).AddC(1)}
}

func TestRun(t *testing.T) {
	c := xlatest.Client(t)
	p := compiled(t, c, func(f *hlo.Func) []*hlo.Value {
		x, y := f.Arg(hlo.F32, 2, 3), f.Arg(hlo.F32, 3)
		return []*hlo.Value{x.Add(y), x.SumAll(), x.Cut(0, 0, 1).As(hlo.I32)}
	})
	x, y := put(t, c, []float32{1, 2, 3, 4, 5, 6}, 2, 3), put(t, c, []float32{10, 20, 30}, 3)
	out, err := p.Run(0, x, y)
	require.NoError(t, err)
	require.Equal(t, 3, p.Results())
	require.Equal(t, []float32{11, 22, 33, 14, 25, 36}, get(t, out[0]))
	require.Equal(t, []float32{21}, get(t, out[1]))
	require.Equal(t, []int{2, 3}, out[0].Dims())
	require.Empty(t, out[1].Dims())
	require.Equal(t, hlo.I32, out[2].Type())
	ints := make([]int32, 3)
	require.NoError(t, xla.Get(out[2], ints))
	require.Equal(t, []int32{1, 2, 3}, ints)
	require.NoError(t, xla.FreeAll(append(out, x, y)...))
}

// Donated memory becomes the result's, and the buffer is gone; not donated, it is copied.
func TestDonation(t *testing.T) {
	c := xlatest.Client(t)
	p := compiled(t, c, increment)
	require.EqualValues(t, 16, p.Stats().Alias)
	b := put(t, c, make([]float32, 4), 4)
	at, err := xla.Slice[float32](b)
	require.NoError(t, err)
	for range 3 {
		out, err := p.Run(1, b)
		require.NoError(t, err)
		_, err = p.Run(0, b)
		require.ErrorIs(t, err, xla.ErrClosed)
		require.ErrorContains(t, err, "argument 0 of 1: donated to a program: xla: device 0: f32[4], made at program_test.go:")
		require.ErrorContains(t, err, ", was released at program_test.go:")
		require.ErrorIs(t, xla.Get(b, make([]float32, 4)), xla.ErrClosed)
		require.ErrorIs(t, b.Wait(), xla.ErrClosed)
		require.ErrorIs(t, b.Free(), xla.ErrClosed)
		b = out[0]
	}
	same, err := xla.Slice[float32](b)
	require.NoError(t, err)
	require.Same(t, &at[0], &same[0])
	require.Equal(t, []float32{3, 3, 3, 3}, same)
	out, err := p.Run(0, b)
	require.NoError(t, err)
	other, err := xla.Slice[float32](out[0])
	require.NoError(t, err)
	require.NotSame(t, &at[0], &other[0])
	require.Equal(t, []float32{3, 3, 3, 3}, get(t, b))
	require.NoError(t, xla.FreeAll(b, out[0]))
}

func TestRunErrors(t *testing.T) {
	c, other := xlatest.Client(t), xlatest.Client(t)
	p := compiled(t, c, func(f *hlo.Func) []*hlo.Value {
		return []*hlo.Value{f.Donated(0, hlo.F32, 4).Add(f.Arg(hlo.F32, 4))}
	})
	x, y, foreign, short := put(t, c, make([]float32, 4), 4), put(t, c, make([]float32, 4), 4), put(t, other, make([]float32, 4), 4), put(t, c, make([]float32, 3), 3)
	freed := put(t, c, make([]float32, 4), 4)
	require.NoError(t, freed.Free())
	for _, tc := range []struct {
		name   string
		donate int
		args   []*xla.Buffer
		want   string
	}{
		{"too few", 0, []*xla.Buffer{x}, "xla: run: "},
		{"another shape", 0, []*xla.Buffer{x, short}, "xla: run: "},
		{"nil", 0, []*xla.Buffer{x, nil}, "argument 1 of 2: xla: it is nil"},
		{"freed", 0, []*xla.Buffer{x, freed}, "was released at"},
		{"another client's", 0, []*xla.Buffer{foreign, y}, "argument 0 of 2: xla: f32[4], made at program_test.go:"},
		{"donated twice", 2, []*xla.Buffer{x, x}, "argument 1 of 2: xla: f32[4], made at"},
		{"donated and read", 1, []*xla.Buffer{x, x}, "is being donated to a program: give it once"},
		{"more donated than given", 3, []*xla.Buffer{x, y}, "3 of 2 arguments donated"},
		{"less than none", -1, []*xla.Buffer{x, y}, "-1 of 2 arguments donated"},
		{"donated and refused", 1, []*xla.Buffer{x, short}, "xla: run: "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := p.Run(tc.donate, tc.args...)
			require.ErrorContains(t, err, tc.want)
			for _, b := range []*xla.Buffer{x, y} { // nothing is lost by what was refused
				require.Equal(t, make([]float32, 4), get(t, b))
			}
		})
	}
	require.NoError(t, xla.FreeAll(x, y, foreign, short))
}

func TestCompileErrors(t *testing.T) {
	c := xlatest.Client(t)
	const one = "module { func.func @main() -> tensor<f32> { %0 = stablehlo.constant dense<1.0> : tensor<f32> return %0 : tensor<f32> } }"
	for _, tc := range []struct {
		name, text string
		flags      xla.Flags
		want       string
	}{
		{"no program", "nonsense", nil, "xla: compile: 8 bytes of text: "},
		{"empty", "", nil, "xla: compile: 0 bytes of text: "},
		{"a flag that there is not", one, xla.Flags{"xla_no_such_flag": true}, "xla_no_such_flag"},
		{"a flag of no type", "module {}", xla.Flags{"xla_dump_to": 'x'}, "flag xla_dump_to is a int32"},
		{"a call of nothing", `module @m { func.func @main(%a: tensor<f32>) -> tensor<f32> { %0 = stablehlo.custom_call @no_such_target(%a) {api_version = 4 : i32} : (tensor<f32>) -> tensor<f32>
 return %0 : tensor<f32> } }`, nil, "no_such_target"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := c.Compile(tc.text, tc.flags)
			require.ErrorContains(t, err, tc.want)
		})
	}
	_, err := c.Load(nil)
	require.ErrorContains(t, err, "xla: load: no bytes")
	_, err = c.Load([]byte("nonsense"))
	require.ErrorContains(t, err, "xla: load: 8 bytes: ")
	_, err = c.Plugin().CompileFor("no platform", "", "module {}", nil)
	require.ErrorContains(t, err, "xla: compile: 9 bytes of text for a no platform target: ")
	_, err = c.Plugin().CompileFor("a\x00", "", "", nil)
	require.ErrorContains(t, err, "zero byte")
}

// A saved program does what the first does, donation included.
func TestSave(t *testing.T) {
	c := xlatest.Client(t)
	p := compiled(t, c, increment)
	saved, err := p.Save()
	require.NoError(t, err)
	loaded, err := c.Load(saved)
	require.NoError(t, err)
	out, err := loaded.Run(1, put(t, c, []float32{1, 2, 3, 4}, 4))
	require.NoError(t, err)
	require.Equal(t, []float32{2, 3, 4, 5}, get(t, out[0]))
	require.Equal(t, p.Stats().Alias, loaded.Stats().Alias)
	require.NoError(t, out[0].Free())
	require.NoError(t, loaded.Free())
	_, err = loaded.Save()
	require.ErrorIs(t, err, xla.ErrClosed)
	_, err = loaded.Run(0)
	require.ErrorIs(t, err, xla.ErrClosed)
}

// What a program takes is known before it runs, and a run for which there is no memory says how much it wanted.
func TestOutOfMemory(t *testing.T) {
	c := xlatest.Client(t)
	const n = 1 << 46 // bytes
	p := compiled(t, c, func(f *hlo.Func) []*hlo.Value {
		x := f.Arg(hlo.F32).To(1<<22, 1<<22)
		return []*hlo.Value{x.Add(x)}
	})
	require.EqualValues(t, n, p.Stats().Results)
	require.GreaterOrEqual(t, p.Stats().Peak, int64(n))
	x := put(t, c, []float32{1})
	out, err := p.Run(0, x)
	if err == nil { // the program has begun to run, and its result says it
		err = out[0].Wait()
		require.NoError(t, out[0].Free())
	}
	require.ErrorIs(t, err, xla.ErrOutOfMemory)
	require.ErrorContains(t, err, fmt.Sprint(n))
	require.Equal(t, []float32{1}, get(t, x))
	require.NoError(t, x.Free())
}

// The client cannot go while something of it is live.
func TestCloseRefused(t *testing.T) {
	p, err := xla.Open(xlatest.Path(t))
	require.NoError(t, err)
	c, err := p.NewClient(nil)
	require.NoError(t, err)
	x := put(t, c, []float32{1})
	require.ErrorContains(t, c.Close(), "cannot be closed: 1 of its buffers and programs were not freed")
	require.NoError(t, x.Free())
	require.NoError(t, c.Close())
}

// Runs that nothing waits for, in a chain, with results that are freed before they are computed.
func TestNothingWaits(t *testing.T) {
	c := xlatest.Client(t)
	p := compiled(t, c, func(f *hlo.Func) []*hlo.Value {
		x := f.Arg(hlo.F32, 64, 64)
		return []*hlo.Value{hlo.Dot(x, x, []int{1}, []int{0}, nil, nil).MulC(1 / 64.), x.SumAll()}
	})
	ones := make([]float32, 64*64)
	for i := range ones {
		ones[i] = 1
	}
	x := put(t, c, ones, 64, 64)
	for range 200 {
		out, err := p.Run(0, x)
		require.NoError(t, err)
		require.NoError(t, xla.FreeAll(x, out[1]))
		x = out[0]
	}
	require.Equal(t, ones, get(t, x))
	require.NoError(t, x.Free())
}

// Goroutines share a client, a program and an argument, and free what others use.
func TestConcurrent(t *testing.T) {
	c := xlatest.Client(t)
	p := compiled(t, c, func(f *hlo.Func) []*hlo.Value { return []*hlo.Value{f.Arg(hlo.F32, 4).AddC(1)} })
	for range 20 {
		x := put(t, c, []float32{1, 2, 3, 4}, 4)
		var wait sync.WaitGroup
		for i := range 4 {
			wait.Go(func() {
				if i == 3 {
					_ = x.Free()
					return
				}
				out, err := p.Run(i%2, x) // one of them donates it
				if err != nil {
					return // gone already
				}
				got := make([]float32, 4)
				if err := xla.Get(out[0], got); err != nil || got[3] != 5 {
					t.Error(got, err)
				}
				require.NoError(t, out[0].Free())
			})
		}
		wait.Wait()
		_ = x.Free()
	}
}

// Free beside runs that donate: whoever is second learns it, and nothing is left over, which Close would say.
func TestFreeBesideDonation(t *testing.T) {
	c := xlatest.Client(t)
	p := compiled(t, c, increment)
	for range 3000 {
		x := put(t, c, []float32{1, 2, 3, 4}, 4)
		var freed sync.WaitGroup
		var begun atomic.Bool
		freed.Go(func() {
			for !begun.Load() {
			}
			_ = x.Free()
		})
		runtime.Gosched()
		begun.Store(true)
		if out, err := p.Run(1, x); err == nil {
			require.NoError(t, out[0].Free())
		}
		freed.Wait()
		_ = x.Free()
	}
}

// Close beside a second Close and beside what makes something: one of two is first, and nothing is used after it.
func TestCloseBeside(t *testing.T) {
	p, err := xla.Open(xlatest.Path(t))
	require.NoError(t, err)
	for range 10 {
		c, err := p.NewClient(xla.Options{"cpu_device_count": 1})
		require.NoError(t, err)
		var all sync.WaitGroup
		var closed atomic.Int32
		for i := range 6 {
			all.Go(func() {
				switch i {
				case 0, 1:
					if c.Close() == nil {
						closed.Add(1)
					}
				case 2:
					_, _ = c.Memory()
				default:
					if b, err := xla.Put(c, []float32{1}); err == nil {
						assert.NoError(t, b.Free())
					} else {
						assert.ErrorIs(t, err, xla.ErrClosed)
					}
				}
			})
		}
		all.Wait()
		if c.Close() == nil {
			closed.Add(1)
		}
		require.EqualValues(t, 1, closed.Load())
	}
}

func TestNoProgram(t *testing.T) {
	var p *xla.Program
	require.NoError(t, p.Free())
	_, err := p.Run(0)
	require.ErrorIs(t, err, xla.ErrClosed)
	_, err = p.Save()
	require.ErrorIs(t, err, xla.ErrClosed)
}

func TestLeak(t *testing.T) {
	c := xlatest.Client(t)
	told := make(chan string, 10)
	xla.OnLeak(func(text string) { told <- text })
	defer xla.OnLeak(nil)
	var kept uintptr
	func() {
		x := put(t, c, []float32{1, 2}, 2)
		kept, _ = xla.Handle(x)
	}()
	for text := ""; text == ""; {
		runtime.GC()
		select {
		case text = <-told:
			require.True(t, strings.HasPrefix(text, "xla: device 0: f32[2], made at program_test.go:"), text)
			require.Contains(t, text, "was never released")
		default:
		}
	}
	xla.Destroy(c, kept) // what was leaked
}
