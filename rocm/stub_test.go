//go:build !rccl

package rocm_test

import "testing"

func TestStub(t *testing.T) { platform.TestAbsent(t) }
