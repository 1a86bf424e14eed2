package plane

import (
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each option is either agreed by all ranks, or a hook, and none is lost on the way there.
func TestOptionsArrive(t *testing.T) {
	var o Options
	agreed, hooks := reflect.TypeOf(o.agreed()), reflect.TypeFor[Hooks]()
	require.Equal(t, reflect.TypeFor[Options]().NumField(), agreed.NumField()+hooks.NumField())
	for i := range reflect.TypeFor[Options]().NumField() {
		o = Options{}
		f := reflect.ValueOf(&o).Elem().Field(i)
		name := reflect.TypeFor[Options]().Field(i).Name
		switch f.Kind() {
		case reflect.Func:
			f.Set(reflect.MakeFunc(f.Type(), func([]reflect.Value) (out []reflect.Value) {
				for j := range f.Type().NumOut() {
					out = append(out, reflect.Zero(f.Type().Out(j)))
				}
				return out
			}))
		case reflect.Map, reflect.Slice:
			f.Set(reflect.MakeSlice(f.Type(), 1, 1))
		case reflect.Bool:
			f.SetBool(true)
		case reflect.String:
			f.SetString("x")
		case reflect.Int64:
			f.SetInt(1)
		default:
			require.Fail(t, "a kind of option that this test cannot set", "%s is %v", name, f.Kind())
		}
		to := reflect.ValueOf(o.agreed()).FieldByName(name)
		if !to.IsValid() {
			to = reflect.ValueOf(o.hooks()).FieldByName(name)
		}
		require.True(t, to.IsValid() && !to.IsZero(), name)
	}
}
