#!/usr/bin/env python3
"""Hugging Face's GPT-2 on the rows of gpt2 -export: hf.py DIR ROWS STEPS LR prints the loss of each step.

DIR is a model as transformers saves it, and DIR/same what gpt2 -export has written for a model of that size, whose tokens are
used. AdamW and clipping are those of examples/gpt2. Needs torch, transformers and numpy."""
import json
import os
import sys

import numpy as np
import torch
from transformers import GPT2LMHeadModel

where, rows, steps, lr = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
config = json.load(open(os.path.join(where, "config.json")))
length = config["n_positions"] + 1
raw = np.fromfile(os.path.join(where, "same"), dtype=np.int32)[-steps * rows * length :]
tokens = torch.from_numpy(raw.astype(np.int64)).view(steps, rows, length)
model = GPT2LMHeadModel.from_pretrained(where, attn_pdrop=0.0, embd_pdrop=0.0, resid_pdrop=0.0).float()
model.train()
decayed = [p for p in model.parameters() if p.dim() > 1]
plain = [p for p in model.parameters() if p.dim() <= 1]
optimizer = torch.optim.AdamW([{"params": decayed, "weight_decay": 0.1}, {"params": plain, "weight_decay": 0.0}], lr=lr, betas=(0.9, 0.95), eps=1e-8)
for batch in tokens:
    logits = model(batch[:, :-1]).logits
    loss = torch.nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), batch[:, 1:].reshape(-1))
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(f"{loss.item():.5f}", end=", ", flush=True)
print()
