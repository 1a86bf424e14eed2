// Package mat is the arithmetic of examples/gpt on float32 slices, on one core: the matrix product
// and the functions of a transformer. On amd64 they are vector kernels (AVX-512 or AVX2, in assembly that gen makes);
// elsewhere, and with the build tag noasm, the Go functions of spec.go, which say what each computes.
//
// The error of a function is that of its kernels against the exact result, in units of its last place:
//
//	Exp                  1
//	Gelu                 2, for z as rounded, which is wrong by up to 2 itself: in all 2 + 2|z|, in relative terms
//	                     (2 + 2|z|) 2^-23, with z = 1.6 h (1 + 0.045 h^2); 2|h| units if e^z is below 2^-126; NaN at infinite h
//	Softmax              2 + that of a sum of positive numbers in 16 lanes, (n/16 + 4)/2
//	all other functions  the bits of the specification: no kernel fuses a multiplication with an addition, but in Mul
//
// A result does not depend on how a program cuts matrices into rows or columns: each element of a product is made by
// the same operations in the same order, whatever lies beside it. Vectors must have the lengths that the comments say;
// others panic.
package mat

//go:generate go -C gen run .

// piece is how many elements one call of a kernel handles at most: 256 KiB, since assembly cannot be preempted.
const piece = 1 << 16

// step is what kernels take whole multiples of.
const step = 16
