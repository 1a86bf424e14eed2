# lora.py make DIR [KIND..]: small random models with adapters of peft in DIR/lora-KIND: base/ (the model), first/ (adapters as they begin),
# data.bin (tokens, then what is wanted after each, -100 where a prompt is masked), and in ref.json 12 losses of training, the loss then, and
# options. trained/ are the adapters then, merged/ the model with them.
# lora.py check DIR: reads ours/ and ours-merged/ back, which the test of train/fit has written, and compares.
import json, os, sys
import numpy as np, torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoModelForCausalLM
from models import data, kinds, rows, steps, T

loras = {
    "llama": ("llama2", dict(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj"])),
    "stable": ("llama3.2", dict(r=4, lora_alpha=8, use_rslora=True, target_modules="all-linear")),
    "pattern": ("qwen2", dict(r=4, lora_alpha=4, target_modules=r".*\.mlp\.(up|down)_proj", layers_to_transform=None)),
    "layers": ("qwen3", dict(r=2, lora_alpha=4, target_modules=["k_proj", "o_proj"], layers_to_transform=[1])),
    "ranks": ("qwen2", dict(r=4, lora_alpha=8, target_modules=["q_proj", "v_proj", "down_proj"], rank_pattern={"q_proj": 2, r"layers\.1\.mlp\.down_proj": 6},
        alpha_pattern={"v_proj": 3}, layers_to_transform=[0, 1], layers_pattern="layers")),
    "turned": ("gpt2", dict(r=4, lora_alpha=8, target_modules=["c_attn"], fan_in_fan_out=True)),
    "bf16": ("llama2", dict(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj"])),
    "nf4": ("llama2", dict(r=8, lora_alpha=16, target_modules=["q_proj", "v_proj"])),
}

NF4 = torch.tensor([-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
    -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224, 0.44070982933044434,
    0.5626170039176941, 0.7229568362236023, 1.0])

def quantized(w):
    """w in NF4 by blocks of 64 and back, by bitsandbytes' published table; and by bitsandbytes, where it is there: the same bits. w is flat for
    it: the kernel for AVX-512 of its 0.50.2 takes the scale [row * (columns // 64) + column // 64], which is another block's than
    quantize_4bit has made where rows are no multiple of 64 (the 112 columns of down_proj here: losses off by 4e-2)."""
    b = w.reshape(-1, 64)
    scale = b.abs().amax(1, keepdim=True)
    by, back = "its table", (NF4[((b / scale)[..., None] - NF4).abs().argmin(-1)] * scale).reshape(w.shape)
    try:
        import bitsandbytes.functional as F
    except ImportError:
        return back, by
    q, state = F.quantize_4bit(w.flatten(), blocksize=64, quant_type="nf4")
    assert torch.equal(F.dequantize_4bit(q, state).reshape(w.shape), back)
    return back, "bitsandbytes"

def wanted(tokens):
    want = tokens[:, :, 1:].copy()
    for r in range(rows):
        want[:, r, : 3 * r] = -100
    return want

def make(dir, name):
    kind, fields = loras[name]
    out, tokens = f"{dir}/lora-{name}", data()
    config, shape = kinds[kind]
    torch.manual_seed(7)
    m = AutoModelForCausalLM.from_config(config(attn_implementation="eager", **shape))
    if name == "bf16":
        m = m.to(torch.bfloat16)
    m.save_pretrained(out + "/base")
    by = ""
    if name == "nf4":
        for key, p in m.named_parameters():
            if p.dim() == 2 and ".layers." in key:
                p.data, by = quantized(p.data)
    m = get_peft_model(m, LoraConfig(task_type="CAUSAL_LM", lora_dropout=0.0, bias="none", **fields))
    with torch.no_grad():
        for key, p in m.named_parameters():
            if "lora_B" in key:
                p += .02 * torch.randn_like(p)
    m.save_pretrained(out + "/first")
    want = wanted(tokens)
    np.concatenate([tokens[:, :, :-1].flatten(), want.flatten()]).astype(np.int32).tofile(out + "/data.bin")
    x, y = torch.tensor(tokens[:, :, :-1].astype(np.int64)), torch.tensor(want.astype(np.int64))
    params = [p for p in m.parameters() if p.requires_grad]
    opt = torch.optim.AdamW(params, lr=1e-2, betas=(.9, .95), eps=1e-6, weight_decay=.1)
    m.train()
    loss = lambda s: torch.nn.functional.cross_entropy(m(input_ids=x[s]).logits.float().flatten(0, 1), y[s].flatten(), ignore_index=-100)
    ref = {"losses": [], "by": by}
    for s in range(steps):
        l = loss(s)
        opt.zero_grad()
        l.backward()
        torch.nn.utils.clip_grad_norm_(params, 1.0)
        opt.step()
        ref["losses"].append(float(l.detach()))
    m.eval()
    with torch.no_grad():
        ref["after"] = float(loss(0))
    m.save_pretrained(out + "/trained")
    m.merge_and_unload().save_pretrained(out + "/merged")
    json.dump(ref, open(out + "/ref.json", "w"))
    print("lora", name, ref["losses"][0], ref["losses"][-1], by, flush=True)

def check(dir, name):
    out = f"{dir}/lora-{name}"
    base = lambda: AutoModelForCausalLM.from_pretrained(out + "/base", attn_implementation="eager")
    tuned = PeftModel.from_pretrained(base(), out + "/ours")
    a = tuned.state_dict()
    b = PeftModel.from_pretrained(base(), out + "/trained").state_dict()
    assert a.keys() == b.keys(), (name, a.keys() ^ b.keys())
    adapters = max(float((a[k] - b[k]).abs().max()) for k in a if "lora_" in k)
    ours, info = AutoModelForCausalLM.from_pretrained(out + "/ours-merged", output_loading_info=True)
    assert not any(info.values()), (name, info)
    # Merged by peft are the same adapters: those that it has trained differ by what AdamW makes of the last bits of gradients.
    a, b = ours.state_dict(), tuned.merge_and_unload().state_dict()
    merged = max(float((a[k].float() - b[k].float()).abs().max()) for k in b)
    print(f"{name}: adapters differ from peft's by {adapters:.1e}, the merged model from peft's of them by {merged:.1e}", flush=True)
    if name not in ("bf16", "nf4"):
        assert adapters <= 1e-4 and merged <= 1e-6, name

if __name__ == "__main__":
    torch.set_num_threads(1)
    what, dir = sys.argv[1], sys.argv[2]
    for name in sys.argv[3:] or loras:
        {"make": make, "check": check}[what](dir, name)
