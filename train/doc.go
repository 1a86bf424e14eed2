// Package train holds the packages that split the training of one model over the ranks of a job.
// They move and sum what a program owns: parameters, gradients, activations. They have no tensors,
// no autograd and no layers, and the loop is the program's.
//
//   - ddp averages gradients in buckets, as PyTorch's DistributedDataParallel does
//   - zero shards optimizer state, gradients and parameters: ZeRO 1 to 3, FSDP2, HSDP
//   - tp exchanges for layers that are split by columns and rows, as Megatron does
//   - sp splits a sequence: Ulysses, ring attention
//   - pp puts layers on stages: GPipe, 1F1B, interleaved
//   - mesh names the dimensions of the ranks, with a Comm for each
//   - device is memory of a GPU, with the kernels that zero needs there
//   - amp scales a loss, so that gradients fit into float16
//   - optim has elementwise optimizers, for whole parameters and for shards
//   - optim/whole has those whose step depends on the whole tensor: LAMB, Adafactor, Muon
//   - ckpt saves in parts, and loads into another layout
//   - mirror keeps the state of each rank in the memory of another host
//   - data says which samples belong to which rank
//   - data/loader loads what comes next; data/pack puts short documents into rows
//   - history records metrics over ranks
//   - history/events writes TensorBoard's files; history/grads measures gradients
//   - internal/raw, internal/same and internal/vec are for these packages alone: bytes, arguments, arithmetic
//
// A model that fits on one rank needs ddp, data and ckpt. docs/training.md says which strategy fits
// which model, what each costs, and which bits are the same.
package train
