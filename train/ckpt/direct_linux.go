package ckpt

import "syscall"

// direct is for writes that go past the page cache.
const direct = syscall.O_DIRECT
