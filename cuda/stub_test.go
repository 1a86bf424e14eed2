//go:build !nccl

package cuda_test

import "testing"

func TestStub(t *testing.T) { platform.TestAbsent(t) }
