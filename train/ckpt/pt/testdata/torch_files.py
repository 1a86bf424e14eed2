"""Writes theirs.pt and theirs, a directory, and says what tensors they have, and ours.pt and ours."""
import hashlib, json, sys, warnings

warnings.filterwarnings("ignore")
import torch
import torch.distributed.checkpoint as dcp

NAMES = {"float32": "F32", "float64": "F64", "float16": "F16", "bfloat16": "BF16", "int64": "I64", "int32": "I32",
         "int16": "I16", "int8": "I8", "uint8": "U8", "bool": "BOOL", "complex64": "C64", "float8_e4m3fn": "F8_E4M3",
         "float8_e5m2": "F8_E5M2", "float8_e8m0fnu": "F8_E8M0", "uint16": "U16", "uint32": "U32", "uint64": "U64"}


def bytes_of(t):
    t = t.detach().contiguous()
    return t.view(-1).view(torch.uint8).numpy().tobytes() if t.numel() else b""


def said(tensors):
    return {name: "%s [%s] %s" % (NAMES[str(t.dtype).split(".")[1]], " ".join(map(str, t.shape)),
                                  hashlib.sha256(bytes_of(t)).hexdigest()) for name, t in tensors.items()}


def flat(x, path=()):
    if isinstance(x, torch.Tensor):
        return {".".join(path): x}
    items = x.items() if isinstance(x, dict) else enumerate(x) if isinstance(x, (list, tuple)) else ()
    out = {}
    for k, v in items:
        out.update(flat(v, path + (str(k),)))
    return out


dir = sys.argv[1]
torch.manual_seed(0)
raw = torch.randint(0, 100, (8 * 24,), dtype=torch.uint8)
some = {name: raw[: 24 * getattr(torch, name).itemsize].view(getattr(torch, name)).clone().view(4, 6)
        for name in NAMES if name != "bool"}
some["bool"] = (raw[:24] > 50).view(4, 6)
base = torch.randn(5, 7)
linear = torch.nn.Linear(3, 2)
adam = torch.optim.Adam(linear.parameters())
linear(torch.ones(3)).sum().backward()
adam.step()
theirs = {"some": some, "t": base.t(), "column": base[:, 2], "every": base[::2, 1::3], "base": base, "scalar": torch.tensor(3.5),
          "empty": torch.empty(0, 4), "model": linear.state_dict(), "optim": adam.state_dict(), "parameter": linear.weight,
          "step": 3, "text": "x"}
torch.save(theirs, dir + "/theirs.pt")
dcp.save(theirs, checkpoint_id=dir + "/theirs", no_dist=True)

ours = torch.load(dir + "/ours.pt", weights_only=True)
loaded = {name: torch.empty_like(t) for name, t in ours.items()}
dcp.load(loaded, checkpoint_id=dir + "/ours", no_dist=True)
print(json.dumps({"ours.pt": said(ours), "ours": said(loaded), "theirs.pt": said(flat(theirs)), "theirs": said(flat(theirs))}))
