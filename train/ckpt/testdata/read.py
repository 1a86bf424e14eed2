# Opens every file that it is given with Python's safetensors, in both of its ways, and prints what is in them.
import hashlib, json, sys
import numpy, safetensors
from safetensors.numpy import load_file

out = {}
for path in sys.argv[1:]:
    tensors = out[path] = {}
    with open(path, "rb") as f:
        raw = f.read()
    for name, t in safetensors.deserialize(raw):
        tensors[name] = {"dtype": t["dtype"], "shape": list(t["shape"]), "sha256": hashlib.sha256(bytes(t["data"])).hexdigest()}
    if any(t["dtype"] in ("BF16", "F8_E4M3", "F8_E5M2") for t in tensors.values()):
        continue  # numpy has no such types
    for name, a in load_file(path).items():
        assert list(a.shape) == tensors[name]["shape"], name
        tensors[name]["values"] = a.astype("float64").ravel().tolist()
    with safetensors.safe_open(path, framework="np") as f:
        assert sorted(f.keys()) == sorted(tensors)
        assert f.metadata() == {"format": "pt"}
print(json.dumps(out))
