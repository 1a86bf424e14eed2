"""examples/gpt in PyTorch: the same model, optimizer and schedule, on one process a rank (DDP over gloo).

Prints a line of JSON for each step: its loss, and its seconds. Rows come from a file of batches (int32: of each step, the
rows' tokens, then what follows them), or at random places from a file of tokens (int32).
"""
import argparse
import json
import math
import os
import subprocess
import sys
import time


def flags():
    a = argparse.ArgumentParser()
    for name, value in dict(vocab=0, context=128, width=128, heads=4, layers=4, rows=16, steps=20, ranks=1, rank=-1).items():
        a.add_argument("--" + name, type=int, default=value)
    a.add_argument("--lr", type=float, default=1e-3)
    a.add_argument("--clip", type=float, default=1)
    a.add_argument("--shard", choices=["ddp", "fsdp"], default="ddp")
    a.add_argument("--tokens", help="file of tokens")
    a.add_argument("--batches", help="file of batches: one more than steps, of which the last is not trained on")
    a.add_argument("--weights", help="safetensors to begin with, under nanoGPT's names, matrices as rows of inputs")
    a.add_argument("--trained", help="safetensors to write")
    a.add_argument("--port", default="29511")
    return a.parse_args()


def main(o):
    import numpy as np
    import torch
    import torch.distributed as dist
    from torch import nn
    from torch.nn import functional as F

    torch.set_num_threads(1)
    torch.manual_seed(1)

    class Linear(nn.Module):
        """x W, with W as nanoGPT's checkpoints of GPT-2 have it."""

        def __init__(self, a, b):
            super().__init__()
            self.weight = nn.Parameter(torch.randn(b, a) * 0.02)

        def forward(self, x):
            return F.linear(x, self.weight)

    class Norm(nn.Module):
        def __init__(self, n):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(n))

        def forward(self, x):
            return F.layer_norm(x, self.weight.shape, self.weight)

    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.c_attn, self.c_proj = Linear(o.width, 3 * o.width), Linear(o.width, o.width)

        def forward(self, x):
            b, t, w = x.shape
            q, k, v = (y.view(b, t, o.heads, w // o.heads).transpose(1, 2) for y in self.c_attn(x).split(w, 2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return self.c_proj(y.transpose(1, 2).reshape(b, t, w))

    class MLP(nn.Module):
        def __init__(self):
            super().__init__()
            self.c_fc, self.c_proj = Linear(o.width, 4 * o.width), Linear(4 * o.width, o.width)

        def forward(self, x):
            return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.ln_1, self.attn, self.ln_2, self.mlp = Norm(o.width), Attention(), Norm(o.width), MLP()

        def forward(self, x):
            x = x + self.attn(self.ln_1(x))
            return x + self.mlp(self.ln_2(x))

    class GPT(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte, self.wpe = nn.Embedding(o.vocab, o.width), nn.Embedding(o.context, o.width)
            self.h = nn.ModuleList(Block() for _ in range(o.layers))
            self.ln_f, self.lm_head = Norm(o.width), Linear(o.width, o.vocab)
            for e in (self.wte, self.wpe):
                nn.init.normal_(e.weight, std=0.02)

        def forward(self, x, y):
            x = self.wte(x) + self.wpe.weight
            for b in self.h:
                x = b(x)
            return F.cross_entropy(self.lm_head(self.ln_f(x)).view(-1, o.vocab), y.view(-1))

    model = GPT()
    whole = dict(model.named_parameters())
    linear = {n + ".weight" for n, m in model.named_modules() if isinstance(m, Linear)}
    shapes = {}
    if o.weights:
        from safetensors.torch import load_file

        given = load_file(o.weights)
        shapes = {n: t.shape for n, t in given.items()}
        if set(given) != set(whole):
            sys.exit(f"{o.weights} has {sorted(set(given) ^ set(whole))} too many or too few")
        with torch.no_grad():
            for n, t in given.items():
                p = whole[n]
                p.copy_(t.reshape(p.shape[1], p.shape[0]).T if n in linear else t)
    net = model
    if o.ranks > 1:
        dist.init_process_group("gloo", init_method="tcp://127.0.0.1:" + o.port, rank=o.rank, world_size=o.ranks)
        if o.shard == "ddp":
            net = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
        else:
            from torch.distributed.fsdp import fully_shard

            for b in model.h:
                fully_shard(b)
            fully_shard(model)
    params = list(net.parameters())
    decay = [p for n, p in net.named_parameters() if n.removeprefix("module.") in linear]
    rest = [p for n, p in net.named_parameters() if n.removeprefix("module.") not in linear]
    opt = torch.optim.AdamW(
        [{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
        lr=o.lr, betas=(0.9, 0.95), eps=1e-8, fused=True)

    tokens = batches = None
    if o.batches:
        batches = np.fromfile(o.batches, np.int32).reshape(-1, 2, o.rows, o.context)
    else:
        tokens = np.fromfile(o.tokens, np.int32)
    per = o.rows // o.ranks
    mine = slice(max(o.rank, 0) * per, (max(o.rank, 0) + 1) * per)

    def batch(step):
        if batches is not None:
            x, y = batches[step - 1]
        else:
            at = np.random.default_rng(step).integers(0, len(tokens) - o.context - 1, o.rows)
            x = np.stack([tokens[a : a + o.context] for a in at])
            y = np.stack([tokens[a + 1 : a + 1 + o.context] for a in at])
        return torch.from_numpy(x[mine].astype(np.int64)), torch.from_numpy(y[mine].astype(np.int64))

    def mean(loss):
        loss = loss.detach().double()
        if o.ranks > 1:
            dist.all_reduce(loss)
        return loss.item() / o.ranks

    for step in range(1, o.steps + 1):
        start = time.perf_counter()
        x, y = batch(step)
        loss = net(x, y)
        opt.zero_grad(set_to_none=False)
        loss.backward()
        if o.clip:
            nn.utils.clip_grad_norm_(params, o.clip)
        for g in opt.param_groups:
            g["lr"] = o.lr / 10 + (o.lr - o.lr / 10) * 0.5 * (1 + math.cos(math.pi * step / o.steps))
        opt.step()
        loss = mean(loss)
        if o.rank <= 0:
            print(json.dumps({"step": step, "loss": loss, "seconds": time.perf_counter() - start}), flush=True)
    if o.trained and o.rank <= 0:
        from safetensors.torch import save_file

        out = {n: (p.detach().T if n in linear else p.detach()).contiguous() for n, p in whole.items()}
        save_file({n: t.reshape(shapes.get(n, t.shape)) for n, t in out.items()}, o.trained)
    if batches is not None and len(batches) > o.steps:
        with torch.no_grad():
            loss = mean(net(*batch(o.steps + 1)))
        if o.rank <= 0:
            print(json.dumps({"step": o.steps + 1, "loss": loss, "seconds": 0}), flush=True)
    if o.ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    o = flags()
    if o.ranks == 1 or o.rank >= 0:
        main(o)
    else:
        ps = [subprocess.Popen([sys.executable, "-W", "ignore", *sys.argv, "--rank", str(r)]) for r in range(o.ranks)]
        sys.exit(max(p.wait() for p in ps))
