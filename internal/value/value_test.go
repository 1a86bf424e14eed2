package value

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/url"
	"reflect"
	"runtime"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
)

const most = 1 << 26

// roundTrip checks that v comes back as it is. NaN is equal to nothing, so bits are compared by the caller.
func roundTrip[V any](t *testing.T, v V) V {
	t.Helper()
	data, err := Encode(v, most)
	require.NoError(t, err)
	back, err := Decode[V](data)
	require.NoError(t, err)
	for n := range min(len(data), 300) { // every beginning of it is an error, and no panic
		_, err := Decode[V](data[:n])
		require.Error(t, err)
	}
	_, err = Decode[V](append(data[:len(data):len(data)], 0))
	require.Error(t, err)
	return back
}

func same[V any](t *testing.T, v V) {
	t.Helper()
	back := roundTrip(t, v)
	require.True(t, reflect.DeepEqual(v, back), "%#v is not %#v", back, v)
}

func pointer[T any](v T) *T { return &v }

type (
	base    struct{ Of int }
	Public  struct{ Of string }
	options struct {
		Rate    *float64
		On      *bool
		Name    *string
		Nested  **int
		Empty   []int
		None    []int
		Map     map[string]*int
		NoMap   map[string]int
		Any     any
		Err     error
		Array   [3]*uint8
		Chan    chan int
		Func    func()
		Numbers [4]float32
		Flags   []bool
		base
		Public
		*Private
		hidden *int
		cached map[string]int
	}
	Private struct{ X int8 }
	node    struct {
		Value int
		Next  *node
	}
	tree struct {
		Children []*tree
		Parent   *tree
	}
	padded struct {
		A uint8
		B uint64
	}
	empty   struct{}
	secrets struct{ a, b int }
	myFloat float64
	self    []self
	deep    map[string]deep
	failure struct{ Text string }
	event   struct { // has time.Time's methods, which know nothing of Name
		time.Time
		Name string
	}
	stamped struct { // has methods of its own
		time.Time
		name string
	}
	boxed  struct{ In any }
	opaque struct{ x int }
	broken struct{ X int }
	onlyTo struct{ X int }
	sign   struct{} // says something by its type alone
)

func (f *failure) Error() string { return f.Text }

func (s stamped) MarshalBinary() ([]byte, error)  { return []byte(s.name), nil }
func (s *stamped) UnmarshalBinary(b []byte) error { s.name = string(b); return nil }
func (s stamped) GobEncode() ([]byte, error)      { return []byte(s.name), nil }
func (s *stamped) GobDecode(b []byte) error       { s.name = string(b); return nil }
func (o *opaque) MarshalBinary() ([]byte, error)  { return []byte{byte(o.x)}, nil }
func (o *opaque) UnmarshalBinary(b []byte) error  { o.x = int(b[0]); return nil }
func (sign) MarshalBinary() ([]byte, error)       { return []byte{1}, nil }
func (*sign) UnmarshalBinary([]byte) error        { return nil }
func (broken) GobEncode() ([]byte, error)         { return []byte{1}, nil }
func (*broken) GobDecode([]byte) error            { panic("no way back") }
func (onlyTo) MarshalBinary() (data []byte, err error) {
	return nil, errors.New("not used without a way back")
}

func init() {
	for _, v := range []any{padded{}, &failure{}, node{}, map[string]any{}, []any{}, boxed{}, new(big.Int), time.Time{}, opaque{}, myFloat(0), tree{}} {
		gob.Register(v)
	}
}

func TestWhatIsGivenArrives(t *testing.T) {
	same(t, options{})
	same(t, options{
		Rate: new(float64), On: new(bool), Name: new(string), Nested: pointer(new(int)), Empty: []int{}, Map: map[string]*int{"nil": nil, "zero": new(int), "": pointer(-1)},
		NoMap: map[string]int{}, Any: int8(-3), Err: &failure{"f"}, Array: [3]*uint8{1: new(uint8)}, Numbers: [4]float32{1, 2, 3, 4}, Flags: []bool{true, false},
		base: base{3}, Public: Public{"p"}, Private: &Private{0},
	})
	same(t, new(int))
	same(t, pointer(pointer(false)))
	same[*int](t, nil)
	same[any](t, nil)
	same[error](t, nil)
	same[error](t, &failure{})
	same[any](t, (*node)(nil))
	same[any](t, pointer(pointer(3)))
	same[func()](t, nil)
	same(t, []any{1, "", []byte{}, []string(nil), true, 1i, padded{1, 2}, &padded{3, 4}, padded{5, 6}, map[string]any{"a": []any{nil}}, uint16(7), big.NewInt(1), myFloat(2)})
	same(t, map[any]int{1: 1, "a": 2, padded{}: 3, [0]int{}: 4}[1])
	same(t, map[[2]int]float32{{1, 2}: 3})
	same(t, map[empty]empty{{}: {}})
	same(t, map[empty]empty{})
	same(t, make([]empty, 1<<30))
	same(t, [1000]empty{})
	same(t, make([]sign, 3))
	same(t, make([][2]sign, 3))
	same(t, map[sign][]sign{{}: {{}}})
	same(t, make([]secrets, 3))
	same(t, make([][0]int, 5))
	same(t, [][]int{nil, {}, {1}})
	same(t, self{nil, {}, {{}}})
	same(t, deep{"a": nil, "b": {"c": {}}})
	same(t, []padded{{1, 2}, {3, 4}})
	same(t, []string{"a", "", strings.Repeat("long", 1<<18)})
	same(t, event{time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC), "named"})
	same(t, stamped{name: "own"})
	same(t, onlyTo{7})
	same(t, struct{ X, Y int8 }{math.MinInt8, 1})
	same(t, uintptr(math.MaxUint32))
	same(t, &node{1, &node{0, &node{}}})
	same(t, url.URL{Scheme: "https", Host: "h", Path: "/p"})
	shared := new(int)
	same(t, []*int{shared, shared})
}

func TestEveryBitOfAFloatArrives(t *testing.T) {
	for _, bits := range []uint64{1 << 63, 0x7ff8000000000001, 0x7ff0000000000001, 0xffffffffffffffff, 1, math.Float64bits(math.Inf(-1))} {
		x := struct {
			F float64
			N myFloat
			P *float64
			A any
			M map[string]float64
			G float32
			C complex128
		}{}
		x.F = math.Float64frombits(bits)
		x.N, x.P, x.A, x.M, x.G = myFloat(x.F), &x.F, x.F, map[string]float64{"k": x.F}, math.Float32frombits(uint32(bits>>32)|1)
		x.C = complex(x.F, x.F)
		y := roundTrip(t, x)
		for _, f := range []float64{y.F, float64(y.N), *y.P, y.A.(float64), y.M["k"], real(y.C), imag(y.C)} {
			require.Equal(t, bits, math.Float64bits(f))
		}
		require.Equal(t, math.Float32bits(x.G), math.Float32bits(y.G))
	}
	require.Len(t, roundTrip(t, map[float64]int{math.NaN(): 1, -math.NaN(): 2, 0: 3}), 3)
}

func TestTimes(t *testing.T) {
	at := time.Date(2026, 7, 1, 2, 3, 4, 5, time.UTC)
	same(t, at)
	same(t, time.Time{})
	same(t, at.Local())
	same(t, at.In(time.FixedZone("X", -3601)))
	same(t, at.In(time.FixedZone("", 7200)))
	if l, err := time.LoadLocation("America/New_York"); err == nil {
		same(t, at.In(l))
		same(t, at.AddDate(0, 6, 0).In(l))
		same(t, []*time.Time{pointer(at.In(l))})

		// The location of a process that has loaded it when another rule held, as in winter.
		winter := *l
		held := reflect.ValueOf(&winter).Elem().FieldByName("cacheEnd")
		reflect.NewAt(held.Type(), held.Addr().UnsafePointer()).Elem().SetInt(1)
		require.Equal(t, l.String(), roundTrip(t, at.In(&winter)).Location().String())
	}
	now := time.Now()
	require.True(t, reflect.DeepEqual(now.Round(0), roundTrip(t, now)))
	same[any](t, at)
}

func TestBigNumbers(t *testing.T) {
	huge, _ := new(big.Int).SetString(strings.Repeat("123", 100), 10)
	for _, i := range []*big.Int{nil, new(big.Int), big.NewInt(0), big.NewInt(-1), huge} {
		same(t, i)
		same(t, struct{ I *big.Int }{i})
	}
	same(t, *huge)
	same(t, big.NewRat(-1, 3))
	same(t, big.NewFloat(-0.1))
	same(t, new(big.Float).SetPrec(200).SetInf(true))
	same(t, map[string]*big.Int{"a": huge, "zero": new(big.Int)})
}

// What cannot travel is refused with its path.
func TestRefusals(t *testing.T) {
	ring := &node{}
	ring.Next = &node{Next: ring}
	family := &tree{}
	family.Children = []*tree{{Parent: family}}
	loop := map[string]any{}
	loop["me"] = loop
	list := []any{1, nil}
	list[1] = list
	for _, tc := range []struct {
		v   any
		err string
	}{
		{options{hidden: new(int)}, "at .hidden: it is not exported, and not zero"},
		{options{cached: map[string]int{}}, "at .cached: it is not exported"},
		{map[string][]secrets{"k": {{}, {1, 0}}}, `at ["k"][1].a: it is not exported`},
		{map[myFloat]*options{2.5: {Chan: make(chan int)}}, "at [2.5].Chan: a chan int that is not nil"},
		{[]options{{}, {Func: func() {}}}, "at [1].Func: a func() that is not nil"},
		{func() {}, "a func() that is not nil"},
		{map[secrets]int{{1, 2}: 1}, "at [key a value.secrets].a: it is not exported"},
		{boxed{In: onlyTo{1}}, "at .In: a value.onlyTo in an interface: gob: type not registered"},
		{boxed{In: boxed{In: boxed{In: options{}}}}, "at .In.(value.boxed).In.(value.boxed).In: a value.options in an interface: gob: type not registered"},
		{boxed{In: pointer(pointer(pointer(pointer(pointer(pointer(pointer(pointer(pointer(1)))))))))}, "in an interface"},
		{[]broken{{1}}, "at [0]: a value.broken: its decoder panicked: no way back"},
		{ring, "at .Next.Next: it leads back to itself"},
		{family, "at .Children[0].Parent: it leads back to itself"},
		{loop, `at ["me"].(map[string]interface {}): it leads back to itself`},
		{list, "it leads back to itself"},
	} {
		_, err := encodeAny(tc.v)
		require.ErrorContains(t, err, tc.err)
		require.Less(t, len(err.Error()), 1000)
	}
	_, err := Encode(make([]int64, 100), 799)
	require.ErrorIs(t, err, ErrTooLarge)
	_, err = Encode("long", 1)
	require.ErrorIs(t, err, ErrTooLarge)
	double := &tree{} // 2 to the 60 parts
	for range 60 {
		double = &tree{Children: []*tree{double, double}}
	}
	_, err = Encode(double, 1<<16)
	require.ErrorIs(t, err, ErrTooLarge)
}

// encodeAny encodes what is in v, as the type that it has.
func encodeAny(v any) ([]byte, error) {
	e := encoder{limit: most}
	at := reflect.New(reflect.TypeOf(v))
	at.Elem().Set(reflect.ValueOf(v))
	if r := coderOf(at.Type().Elem()).enc(&e, at.UnsafePointer()); r != nil {
		return nil, r
	}
	return e.out, nil
}

// What is nested deeply arrives, up to a limit.
func TestNesting(t *testing.T) {
	list := func(n int) (head *node) {
		for i := range n {
			head = &node{i, head}
		}
		return head
	}
	chain := func(n int) (in any) {
		for range n {
			in = boxed{in}
		}
		return in
	}
	data, err := Encode(list(mostNested), most)
	require.NoError(t, err)
	got, err := Decode[*node](data)
	require.NoError(t, err)
	for i := range mostNested {
		require.Equal(t, mostNested-1-i, got.Value)
		got = got.Next
	}
	require.Nil(t, got)
	_, err = Encode(list(mostNested+1), most)
	require.ErrorContains(t, err, "lie in each other")
	data, err = Encode(chain(mostNested), most)
	require.NoError(t, err)
	_, err = Decode[any](data)
	require.NoError(t, err)
	_, err = Encode(chain(mostNested+1), most)
	require.ErrorContains(t, err, "lie in each other")
}

// A value is decoded as its own type alone: all that its bytes depend on is compared.
func TestOtherTypes(t *testing.T) {
	data, err := Encode("text", most)
	require.NoError(t, err)
	_, err = Decode[int](data)
	require.EqualError(t, err, `it is a "string"`)
	_, err = Decode[[]byte](data)
	require.Error(t, err)
	prints := map[uint64]reflect.Type{}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[int](), reflect.TypeFor[int64](), reflect.TypeFor[uint64](), reflect.TypeFor[float64](), reflect.TypeFor[[]int](), reflect.TypeFor[[1]int](),
		reflect.TypeFor[[2]int](), reflect.TypeFor[*int](), reflect.TypeFor[struct{ A int }](), reflect.TypeFor[struct{ B int }](), reflect.TypeFor[struct{ A, B int }](),
		reflect.TypeFor[node](), reflect.TypeFor[tree](), reflect.TypeFor[time.Time](), reflect.TypeFor[any](), reflect.TypeFor[map[int]string](),
		reflect.TypeFor[map[string]int](), reflect.TypeFor[self](), reflect.TypeFor[deep](), reflect.TypeFor[struct{ A struct{ B int } }](), reflect.TypeFor[empty](),
	} {
		p := printOf(typ)
		require.Equal(t, p, printOf(typ))
		require.Nil(t, prints[p], "%v and %v", typ, prints[p])
		prints[p] = typ
	}
}

// A map has all of its keys, or is refused: two of a type with its own way may have become one.
func TestKeysThatBecomeTheSame(t *testing.T) {
	m := new(map[bool]int8)
	r := coderOf(reflect.TypeOf(*m)).dec(&decoder{in: []byte{3, 1, 1, 1, 2}}, unsafe.Pointer(m))
	require.EqualError(t, r, "of the 2 keys of a map[bool]int8 some have become the same")
}

// Types are made ready by several goroutines at once, parts of themselves among them.
func TestTypesTogether(t *testing.T) {
	type (
		b struct{ A any }
		a struct {
			B []*b
			S []a
			M map[string]a
		}
	)
	for i := range 4 {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			same(t, a{S: []a{{}}, M: map[string]a{"x": {B: []*b{nil, {1}}}}})
		})
	}
}

// settings is what programs send.
type settings struct {
	Name   string
	Rate   float64
	Labels map[int]string
	Steps  []int64
	Next   *settings
	Any    any
	At     time.Time
}

// The same values by package gob, with a new encoder for each, as a message needs it.
func BenchmarkEncode(b *testing.B) {
	s := settings{Name: "run", Rate: .1, Labels: map[int]string{1: "one", 2: "two"}, Steps: make([]int64, 100), Next: &settings{Name: "other"}, Any: int64(3)}
	bench(b, "settings", s)
	bench(b, "number", 3)
	bench(b, "text", strings.Repeat("text", 1000))
	floats := make([]float64, 1<<16)
	for i := range floats {
		floats[i] = 1 / float64(i+1)
	}
	bench(b, "floats", floats)
	bench(b, "structs", make([]settings, 1000))
	bench(b, "anys", []any{padded{1, 2}, padded{3, 4}, "a", 1})
}

func bench[V any](b *testing.B, name string, v V) {
	b.Run(name+"/value", func(b *testing.B) {
		for b.Loop() {
			data, err := Encode(v, most)
			if err == nil {
				_, err = Decode[V](data)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run(name+"/gob", func(b *testing.B) {
		for b.Loop() {
			var data bytes.Buffer
			var back struct{ V V }
			err := gob.NewEncoder(&data).Encode(struct{ V V }{v})
			if err == nil {
				err = gob.NewDecoder(&data).Decode(&back)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

// Whatever bytes come, a value or an error is what they are; what is a value can be encoded again.
func FuzzDecode(f *testing.F) {
	c := coderOf(reflect.TypeFor[options]())
	for _, v := range []options{{}, {Rate: new(float64), Any: []any{padded{}, &padded{}, 1, time.Time{}}, Map: map[string]*int{"a": nil}, Flags: []bool{true}}} {
		data, err := encodeAny(v)
		require.NoError(f, err)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		v := new(options)
		if c.dec(&decoder{in: data}, unsafe.Pointer(v)) != nil {
			return
		}
		again, err := Encode(*v, most)
		require.NoError(t, err)
		_, err = Decode[options](again)
		require.NoError(t, err)
	})
}

// Input that promises much is an error before memory is taken for it.
func TestShortInputTakesLittle(t *testing.T) {
	for _, v := range []any{[]int(nil), []*int(nil), "", map[int]int(nil), [][]string(nil), []any(nil)} {
		at := reflect.New(reflect.TypeOf(v))
		c := coderOf(at.Type().Elem())
		in := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 1, 2, 3, 4, 5, 6, 7, 8}
		allocs := testing.AllocsPerRun(10, func() {
			d := decoder{in: in}
			if c.dec(&d, at.UnsafePointer()) == nil {
				t.Error("decoded")
			}
		})
		require.LessOrEqual(t, allocs, 1., "%T", v)
	}
}

// Nor do the parts of what promises much, each of which has the same few bytes before it.
func TestNestedInputTakesInProportion(t *testing.T) {
	type wide struct {
		Next *wide
		List []wide
		Rest [1 << 16]byte
	}
	const n = 1 << 17
	lists := make([]byte, 0, n+4)
	for len(lists) < n {
		lists = binary.AppendUvarint(lists, uint64(n-len(lists)-4)) // as many as there are bytes
	}
	maps := append(bytes.Repeat([]byte{0x80, 0x20, 0}, n/6), make([]byte, n/2)...) // 4096 with the key ""
	for _, tc := range []struct {
		typ reflect.Type
		in  []byte
	}{
		{reflect.TypeFor[self](), lists},
		{reflect.TypeFor[deep](), maps},
		{reflect.TypeFor[*wide](), bytes.Repeat([]byte{1}, n)},
		{reflect.TypeFor[[]wide](), bytes.Repeat([]byte{2, 0}, n/2)},
		{reflect.TypeFor[[]map[string][1 << 16]byte](), append([]byte{0xff, 0xff, 3}, bytes.Repeat([]byte{1}, n)...)},
	} {
		t.Run(tc.typ.String(), func(t *testing.T) {
			c := coderOf(tc.typ)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_ = c.dec(&decoder{in: tc.in}, reflect.New(tc.typ).UnsafePointer())
			runtime.ReadMemStats(&after)
			require.Less(t, (after.TotalAlloc-before.TotalAlloc)/n, uint64(200))
		})
	}
}
