// Package xla compiles programs for GPUs and CPUs at run time and runs them, with XLA: a program is
// StableHLO text, as package xla/hlo writes it. XLA comes as a plugin, a shared library with the
// PJRT interface, which is opened at run time: no SDK is needed to build, and a program also starts
// where there is no plugin. jax's plugins for CUDA and ROCm are such files (from `pip install
// jax-cuda13-plugin`, jax_plugins/xla_cuda13/xla_cuda_plugin.so), and there are plugins for CPUs.
//
// The build tag xla compiles the package in, with cgo, on Linux. In other builds every call returns an [*Unavailable].
//
//	p, err := xla.Open("") // the file that GOCCL_XLA_PLUGIN names
//	c, err := p.NewClient(nil)
//	add, err := c.Compile(text, nil)
//	x, err := xla.Put(c, []float32{1, 2, 3}, 3)
//	out, err := add.Run(0, x, x)
//	err = xla.Get(out[0], result)
//
// A [Client] is one device: the first that the plugin shows to this process. CUDA_VISIBLE_DEVICES
// and its like choose it.
//
// # What waits
//
// [Program.Run] returns before the program has run, and its results can be arguments of the next
// Run at once. [Get] and [Buffer.Wait] wait. Whoever reads a buffer's memory by its address must
// not be early, so the address is told by [Buf] and [BufOn] alone, which wait, or make a stream
// wait. An error of a program that has begun to run comes from what waits for its results.
//
// # What lives how long
//
// Release what you make: Free buffers and programs, Close the client last. Run donates its first
// arguments if it is told to: their memory becomes that of results, and they are gone. What is used
// after that returns an error that says where it was made and where it was released; so does a
// buffer of another client. [OnLeak] reports what was never released.
//
// All types may be used by several goroutines at once. A Free waits for no call; the memory lives
// as long as calls on it that have begun.
//
// # Trust
//
// A plugin is code of this process, and so is, in the end, a program: a custom call with operands
// that its target does not expect may crash the process. Compile text that your program has
// written, never a user's.
package xla
