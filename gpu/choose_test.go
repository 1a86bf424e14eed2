//go:build linux && cgo && nccl && rccl

package gpu_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/goccl/goccl/internal/gpu/gputest"
)

func TestChoose(t *testing.T) {
	gputest.Fake(t, "the cases are of the fake's 8 devices")
	for _, tc := range []struct {
		name                string
		want, local, locals int
		device              int
		err                 string
	}{
		{name: "first", want: -1, local: 0, locals: 1, device: 0},
		{name: "last", want: -1, local: 7, locals: 8, device: 7},
		{name: "wanted", want: 3, local: 0, locals: 1, device: 3},
		{name: "shared on purpose", want: 3, local: 8, locals: 9, device: 3},
		{name: "wanted but absent", want: 8, local: 0, locals: 1,
			err: "cuda: there is no device 8: 8 devices are visible, 0 to 7"},
		{name: "more ranks than devices", want: -1, local: 8, locals: 9,
			err: "cuda: local rank 8 of 9 has no device of its own: 8 devices are visible, 0 to 7. Start at most one rank per device; to share one on purpose, name it (Options.Device, or -device in bench)"},
		{name: "no such rank", want: -1, local: 2, locals: 2,
			err: "cuda: local rank 2 of 2: a local rank is at least 0 and less than the number of local ranks"},
		{name: "negative", want: -1, local: -1, locals: 2,
			err: "cuda: local rank -1 of 2: a local rank is at least 0 and less than the number of local ranks"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			n, err := gputest.CUDA.Choose(tc.want, tc.local, tc.locals)
			if tc.err != "" {
				require.EqualError(t, err, tc.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tc.device, n)
			if tc.want < 0 {
				d, err := gputest.CUDA.Local(tc.local, tc.locals)
				require.NoError(t, err)
				require.Equal(t, n, d.Index())
			}
		})
	}
}

// A launcher that gives each rank one device of its own: all call it device 0.
func TestChooseOwnDevice(t *testing.T) {
	for _, tc := range []struct {
		name string
		env  []string
		want string
	}{
		{"own", []string{"CUDA_VISIBLE_DEVICES=3"}, "choose: 0 <nil>"},
		{"own, two variables", []string{"ROCR_VISIBLE_DEVICES=2", "CUDA_VISIBLE_DEVICES=0"}, "choose: 0 <nil>"},
		{"several", []string{"CUDA_VISIBLE_DEVICES=3,5"}, "choose: 0 cuda: local rank 5 of 6 has no device of its own: 2 devices are visible, 0 to 1 (CUDA_VISIBLE_DEVICES=3,5). Start at most one rank per device; to share one on purpose, name it (Options.Device, or -device in bench)"},
		{"only one there", []string{"FAKE_DEVICES=1"}, "choose: 0 cuda: local rank 5 of 6 has no device of its own: 1 device is visible, device 0. Start at most one rank per device; to share one on purpose, name it (Options.Device, or -device in bench)"},
		{"none", []string{"CUDA_VISIBLE_DEVICES="}, "choose: 0 cuda: no device is visible (CUDA_VISIBLE_DEVICES=); there is no device to run on"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Contains(t, probeIn(t, tc.env...), tc.want)
		})
	}
}
