// Package examples holds programs on goccl, each in a directory of its own. A good order to read them:
//
//   - hello: the smallest program on package ccl
//   - tutorial: one program that grows in six steps, with docs/tutorial.md
//   - dataparallel: a small network, trained to the same bits on 1, 2 and 4 ranks
//   - recover: a job that loses a rank to SIGKILL and trains on
//   - tpsum: a matrix product whose weights are split over 3 ranks, in three ways
//   - multigpu: one program for NVIDIA, AMD and the CPU
//   - service: an HTTP server whose ranks answer each request together
//   - batchfile: ranks that read their batches from one file by MPI-IO
//   - gpt: a small GPT that trains in any layout of data, tensor, sequence and pipeline parallelism
//   - gpt2: GPT-2 on GPUs, compiled by XLA
//   - finetune: a model of Hugging Face's tuned by adapters, scored, and written back
//
// They share internal/perceptron, a small network, internal/mat, the arithmetic of gpt, and
// internal/job, how gpt, gpt2 and finetune start and stop. Each runs from the root of the
// repository, and the comment of its package has the command:
//
//	go build -o /tmp/hello ./examples/hello
//	go run ./bench launch -np 4 -- /tmp/hello
package examples
