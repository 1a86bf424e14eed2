# models.py make DIR [KIND..]: small random models of transformers in DIR/KIND, each with its config.json and weights, and in ref.json
# its logits, 12 losses of training on the tokens in data.bin, and 64 tokens that it generates then, or what its positions have room for.
# models.py check DIR: reads back what the test of xla/nn/models has saved as DIR/KIND/ours, and compares it with what torch has trained.
import json, os, sys
import numpy as np, torch
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig, MistralConfig, Qwen2Config, Qwen3Config

V, rows, T, steps = 96, 4, 16, 12
gpt2 = dict(vocab_size=V, n_positions=128, n_embd=64, n_layer=2, n_head=4, attn_pdrop=0, embd_pdrop=0, resid_pdrop=0)
llama = dict(vocab_size=V, hidden_size=64, intermediate_size=112, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2,
    max_position_embeddings=256, rms_norm_eps=1e-5, initializer_range=.08)
rope = lambda kind, **more: dict(rope_parameters=dict(rope_type=kind, rope_theta=10000.0, **more))
kinds = {
    "gpt2": (GPT2Config, gpt2),
    "gpt2-untied": (GPT2Config, gpt2 | dict(tie_word_embeddings=False, n_inner=80, activation_function="gelu", scale_attn_weights=False)),
    "llama2": (LlamaConfig, llama | rope("default") | dict(num_key_value_heads=4)),
    "llama3.2": (LlamaConfig, llama | dict(tie_word_embeddings=True, pad_token_id=5, rope_parameters=dict(rope_type="llama3", rope_theta=500000.0, factor=8.0,
        low_freq_factor=1.0, high_freq_factor=4.0, original_max_position_embeddings=32))),
    "llama-biases": (LlamaConfig, llama | dict(attention_bias=True, mlp_bias=True, head_dim=24, hidden_act="gelu", pad_token_id=7)),
    "llama-linear": (LlamaConfig, llama | rope("linear", factor=4.0)),
    "llama-dynamic": (LlamaConfig, llama | rope("dynamic", factor=4.0) | dict(max_position_embeddings=10)),
    "llama-yarn": (LlamaConfig, llama | rope("yarn", factor=4.0, original_max_position_embeddings=64)),
    "mistral": (MistralConfig, llama | dict(sliding_window=5, head_dim=16)),
    "qwen2": (Qwen2Config, llama | dict(tie_word_embeddings=True)),
    "qwen2-windows": (Qwen2Config, llama | dict(use_sliding_window=True, sliding_window=5, max_window_layers=1)),
    "qwen3": (Qwen3Config, llama | dict(head_dim=32)),
}

def data():
    rng = np.random.default_rng(3)
    d = np.zeros((steps, rows, T + 1), np.int32)
    for s in range(steps):
        for r in range(rows):
            x = rng.integers(V)
            for t in range(T + 1):
                d[s, r, t] = x
                x = rng.integers(V) if rng.random() < .1 else (x * 31 + 7) % V
    return d

def make(dir, kind, tokens):
    config, fields = kinds[kind]
    torch.manual_seed(7)
    m = AutoModelForCausalLM.from_config(config(attn_implementation="eager", **fields))
    with torch.no_grad():
        for name, p in m.named_parameters():
            if name.endswith("bias") or p.dim() == 1:
                p += .1 * torch.randn_like(p)
    out = f"{dir}/{kind}"
    m.save_pretrained(out, max_shard_size="60KB")
    tokens.tofile(out + "/data.bin")
    x = torch.tensor(tokens.astype(np.int64))
    m.train()
    ref = {"losses": [], "logits": m(input_ids=x[0, :, :-1]).logits.flatten().tolist()}
    params = list(m.parameters())
    opt = torch.optim.AdamW([{"params": [p for p in params if p.dim() > 1], "weight_decay": .1}, {"params": [p for p in params if p.dim() < 2], "weight_decay": 0}],
        lr=1e-3, betas=(.9, .95), eps=1e-6)  # not 1e-8: that would make noise of gradients that are almost 0 as large as others
    for s in range(steps):
        loss = torch.nn.functional.cross_entropy(m(input_ids=x[s, :, :-1]).logits.flatten(0, 1), x[s, :, 1:].flatten())
        opt.zero_grad()
        loss.backward()
        opt.step()
        ref["losses"].append(float(loss.detach()))
    m.eval()
    ref["after"] = m(input_ids=x[0, :, :-1]).logits.flatten().tolist()
    # Beyond max_position_embeddings transformers changes the frequencies of llama-dynamic with the length, but not those of keys in the cache.
    more = 5 if kind == "llama-dynamic" else 64
    ref["generated"] = m.generate(x[0, :1, :5], max_new_tokens=more, do_sample=False, eos_token_id=None, pad_token_id=0)[0].tolist()
    m.save_pretrained(out + "/trained")
    json.dump(ref, open(out + "/ref.json", "w"))
    print(kind, ref["losses"][0], ref["losses"][-1], flush=True)

def check(dir, kind, tokens):
    out = f"{dir}/{kind}"
    ours, info = AutoModelForCausalLM.from_pretrained(out + "/ours", output_loading_info=True, attn_implementation="eager")
    assert not any(info.values()), (kind, info)
    a, b = ours.state_dict(), AutoModelForCausalLM.from_pretrained(out + "/trained").state_dict()
    assert a.keys() == b.keys(), (kind, a.keys() ^ b.keys())
    params = max(float((a[k] - b[k]).abs().max()) for k in a)
    ours.eval()
    logits = ours(input_ids=torch.tensor(tokens[0, :, :-1].astype(np.int64))).logits.flatten().detach().numpy()
    d = float(np.abs(logits - np.fromfile(out + "/ours/logits.bin", np.float32)).max())
    print(f"{kind}: parameters differ from torch's by {params:.1e}, logits of what was read back from ours by {d:.1e}", flush=True)
    assert params <= 1e-4 and d <= 1e-4, kind

if __name__ == "__main__":
    torch.set_num_threads(1)
    what, dir, tokens = sys.argv[1], sys.argv[2], data()
    for kind in sys.argv[3:] or kinds:
        {"make": make, "check": check}[what](dir, kind, tokens)
