# Says of each file named on standard input whether Python's safetensors opens it, in both of its ways, and what is in it.
import hashlib, json, sys
import safetensors

out = []
for path in sys.stdin.read().split("\n"):
    with open(path, "rb") as f:
        raw = f.read()
    verdicts, tensors = [], {}
    try:
        with safetensors.safe_open(path, framework="np") as f:
            keys = sorted(f.keys())
        verdicts.append(None)
    except Exception as e:
        verdicts.append(str(e))
    try:
        for name, t in safetensors.deserialize(raw):
            shape = [min(n, 2**63 - 1) for n in t["shape"]]
            tensors[name] = {"dtype": t["dtype"], "shape": shape, "sha256": hashlib.sha256(bytes(t["data"])).hexdigest()}
        verdicts.append(None)
    except Exception as e:
        verdicts.append(str(e))
    assert (verdicts[0] is None) == (verdicts[1] is None), (path, verdicts)
    assert verdicts[0] is not None or keys == sorted(tensors), (path, keys)
    out.append({"Error": verdicts[0], "Tensors": tensors})
print(json.dumps(out))
