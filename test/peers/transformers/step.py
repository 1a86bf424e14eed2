# step.py DIR ROWS TOKENS STEPS [compile]: trains a model of DIR/config.json from random weights on random tokens, with two
# threads. Prints each step's seconds, and the most bytes that the process has held.
import json, resource, sys, time
import torch
from transformers import AutoConfig, AutoModelForCausalLM

dir, rows, tokens, steps = sys.argv[1], *map(int, sys.argv[2:5])
torch.set_num_threads(2)
torch.manual_seed(1)
config = AutoConfig.from_pretrained(dir)
model = AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
model.train()
run = torch.compile(model) if sys.argv[5:] == ["compile"] else model
params = list(model.parameters())
opt = torch.optim.AdamW([{"params": [p for p in params if p.dim() > 1], "weight_decay": .1},
    {"params": [p for p in params if p.dim() < 2], "weight_decay": 0}], lr=1e-4, betas=(.9, .95), eps=1e-8, fused=True)
for step in range(steps):
    x = torch.randint(config.vocab_size, (rows, tokens + 1))
    start = time.perf_counter()
    logits = run(input_ids=x[:, :-1], use_cache=False).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), x[:, 1:].flatten())
    opt.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(params, 1)
    opt.step()
    loss.item()
    print(json.dumps({"seconds": time.perf_counter() - start}), flush=True)
print(json.dumps({"peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}))
