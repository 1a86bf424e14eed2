#!/usr/bin/env python3
"""The model of examples/gpt2 in PyTorch, as nanoGPT trains it: bfloat16 autocast, scaled_dot_product_attention, fused AdamW.

torchgpt.py SHAPE ROWS FILE ROWS_OF_FILE STEPS LOG LR ACT [compile] [pace]

SHAPE is layers,heads,width,context,vocab. FILE is what gpt2 -export has written: the parameters, and the tokens of each step. Lines
are those of gpt2: no step waits for the device between two of them. pace: read a line before each LOG steps.
"""
import math
import sys
import time

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

L, H, C, T, V = map(int, sys.argv[1].split(","))
rows, file, rows_of_file, steps, log = int(sys.argv[2]), sys.argv[3], int(sys.argv[4]), int(sys.argv[5]), int(sys.argv[6])
lr, act, flags = float(sys.argv[7]), sys.argv[8], sys.argv[9:]
dev = "cuda" if torch.cuda.is_available() else "cpu"
sync = torch.cuda.synchronize if dev == "cuda" else (lambda: None)
torch.set_float32_matmul_precision("high" if act == "bf16" else "highest")


def linear(a, b):
    return nn.Linear(a, b, bias=False)


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(C))

    def forward(self, x):
        return F.layer_norm(x, (C,), self.weight, None, 1e-5)


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.qkv, self.proj = Norm(), linear(C, 3 * C), linear(C, C)
        self.ln_2, self.fc, self.out = Norm(), linear(C, 4 * C), linear(4 * C, C)

    def forward(self, x):
        q, k, v = (t.view(x.shape[0], T, H, C // H).transpose(1, 2) for t in self.qkv(self.ln_1(x)).split(C, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).contiguous().view(x.shape[0], T, C))
        return x + self.out(F.gelu(self.fc(self.ln_2(x))))


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(V, C), nn.Embedding(T, C)
        self.h = nn.ModuleList(Layer() for _ in range(L))
        self.ln_f, self.head = Norm(), linear(C, V)
        self.head.weight = self.wte.weight

    def forward(self, idx, want):
        x = self.wte(idx) + self.wpe(torch.arange(T, device=idx.device))
        for layer in self.h:
            x = layer(x)
        return F.cross_entropy(self.head(self.ln_f(x)).view(-1, V), want.reshape(-1))


model = GPT().to(dev)
with open(file, "rb") as f, torch.no_grad():

    def take(to, *dims):
        x = torch.from_numpy(np.fromfile(f, dtype=np.float32, count=math.prod(dims)).reshape(dims))
        to.weight.copy_(x.t() if isinstance(to, nn.Linear) else x)

    take(model.wte, V, C)
    take(model.wpe, T, C)
    for layer in model.h:
        take(layer.ln_1, C)
        take(layer.qkv, C, 3 * C)
        take(layer.proj, C, C)
        take(layer.ln_2, C)
        take(layer.fc, C, 4 * C)
        take(layer.out, 4 * C, C)
    take(model.ln_f, C)
    tokens = np.fromfile(f, dtype=np.int32).reshape(-1, rows_of_file, T + 1)[:, :rows]
batches = [torch.from_numpy(x.astype(np.int64)) for x in tokens]
if dev == "cuda":
    batches = [b.pin_memory() for b in batches]

two = [p for p in model.parameters() if p.dim() >= 2]
one = [p for p in model.parameters() if p.dim() < 2]
opt = torch.optim.AdamW([{"params": two, "weight_decay": 0.1}, {"params": one, "weight_decay": 0.0}], lr=lr, betas=(0.9, 0.95), eps=1e-8,
                        fused=dev == "cuda")
run = torch.compile(model) if "compile" in flags else model
cast = torch.autocast(dev, torch.bfloat16, enabled=act == "bf16")
print("torch", torch.__version__, "compile" if "compile" in flags else "eager", "on", torch.cuda.get_device_name() if dev == "cuda" else dev, flush=True)
began, since = time.time(), 1
for step in range(1, steps + 1):
    if "pace" in flags and (step - 1) % log == 0:
        if not sys.stdin.readline():
            sys.exit("no line to go on")
        began, since = time.time(), step
    b = batches[step - 1].to(dev, non_blocking=True)
    with cast:
        loss = run(b[:, :-1], b[:, 1:])
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    opt.zero_grad(set_to_none=True)
    if step == 1 or step % log == 0 or step == steps:
        x = loss.item()
        sync()
        dt = (time.time() - began) / (step - since + 1)
        print(f"step={step} loss={x:.5f} dt={dt:.5f} tps={rows * T / dt:.0f}", flush=True)
        began, since = time.time(), step + 1
if dev == "cuda":
    print(f"at most {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB on the device")
