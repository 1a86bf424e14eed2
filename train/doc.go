// Package train holds the packages that split the training of one model over the ranks of a job.
// They move and sum what a program owns: parameters, gradients, activations. They have no tensors,
// no autograd and no layers, and the loop is the program's.
//
//   - ddp averages gradients in buckets, as PyTorch's DistributedDataParallel does
//   - outer exchanges once in many steps, over slow links: local SGD, DiLoCo
//   - quant sums in 8 or 4 bits an element, as integers or 8-bit floats
//   - powersgd averages gradients by thin factors of them, as a hook of ddp
//   - zero shards optimizer state, gradients and parameters: ZeRO 1 to 3, FSDP2, HSDP
//   - offload keeps on a local disk what zero would hold in memory
//   - tp exchanges for layers that are split by columns and rows, as Megatron does
//   - sp splits a sequence: Ulysses, ring attention
//   - pp puts layers on stages: GPipe, 1F1B, interleaved
//   - mesh names the dimensions of the ranks, with a Comm for each
//   - device is memory of a GPU, with the kernels that zero needs there
//   - amp scales a loss, so that gradients fit into float16, and tensors for 8-bit floats
//   - ep spreads experts over ranks: router, dispatch, combine
//   - distill has the loss by a teacher, over a vocabulary that may be split between ranks
//   - optim has elementwise optimizers, for whole parameters and for shards
//   - optim/whole has those whose step depends on the whole tensor: LAMB, Adafactor, Muon; also for
//     tensors that zero cuts
//   - fit trains models of xla/nn on XLA; fit/loop runs its steps, fit/machine is a rank's device,
//     fit/lora reads peft's configurations, fit/quant and fit/sample are 4 bits and choices of tokens,
//     fit/update writes optimizers into programs
//   - resume writes checkpoints beside the steps, and finds the ranks that are left
//   - ckpt saves in parts, and loads into another layout; ckpt/store says what a place for
//     checkpoints must do that is no shared directory; ckpt/disks has them on the local disks of
//     several hosts; ckpt/pt reads and writes PyTorch's files
//   - mirror keeps the state of each rank in the memory of another host
//   - elastic makes rounds with ranks that come and go
//   - data says which samples belong to which rank
//   - data/loader loads what comes next; data/pack puts short documents into rows
//   - data/text makes rows of JSON lines and plain text; data/bpe is the tokenizer, data/chat the
//     conversation as a model knows it, data/megatron a dataset of tokens in files
//   - history records metrics over ranks
//   - history/events writes TensorBoard's files; history/grads measures gradients;
//     history/timeline draws the steps of all ranks
//   - internal/raw, internal/same, internal/vec, internal/host, internal/paged, internal/quorum and
//     internal/handover are for these packages alone: bytes, arguments, arithmetic, the host's memory,
//     what is on a disk, who goes on after a split, and the sending of a state
//
// A model that fits on one rank needs ddp, data and ckpt. docs/training.md says which strategy fits
// which model, what each costs, and which bits are the same.
package train
