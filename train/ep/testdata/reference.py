# Layers of experts by torch and its autograd, as transformers has them in Mixtral (softmax, the weights of the two
# chosen add up to 1, the auxiliary loss of load_balancing_loss_func over its top) and DeepSeek-V3 (sigmoid, a bias for
# the choice alone, scaled weights). It prints what reference.json has:
#
#     python3 train/ep/testdata/reference.py > train/ep/testdata/reference.json
import json

import torch
from torch.nn.functional import one_hot

TOKENS, WIDTH, EXPERTS, TOP = 12, 3, 4, 2


def numbers(seed, *shape):
    """Numbers between -1 and 1: the generator of Park and Miller, which Go's tests have, too."""
    out = []
    for _ in range(torch.Size(shape).numel()):
        seed = seed * 48271 % 2147483647
        out.append(seed / 2147483647 * 2 - 1)
    return torch.tensor(out, dtype=torch.float64).reshape(shape)


def layer(kind):
    x = numbers(1, TOKENS, WIDTH).requires_grad_()
    logits = (2 * numbers(2, TOKENS, EXPERTS)).requires_grad_()
    w = numbers(3, EXPERTS, WIDTH, WIDTH).requires_grad_()
    dy = numbers(4, TOKENS, WIDTH)
    loss = 0.
    if kind == "mixtral":
        scores = torch.softmax(logits, -1)
        weight, chosen = torch.topk(scores, TOP, dim=-1)
        weight = weight / weight.sum(-1, keepdim=True)
        mask = one_hot(chosen, EXPERTS).double()
        loss = .02 * EXPERTS * (mask.mean(0) * scores.mean(0)).sum() / TOP
    else:
        scores = torch.sigmoid(logits)
        chosen = torch.topk(scores + numbers(5, EXPERTS), TOP, dim=-1).indices
        weight = scores.gather(1, chosen)
        weight = 2.5 * weight / weight.sum(-1, keepdim=True)
    y = torch.zeros(TOKENS, WIDTH, dtype=torch.float64)
    for k in range(TOP):
        y = y + weight[:, k:k + 1] * torch.tanh(torch.einsum("tj,tij->ti", x, w[chosen[:, k]]))
    aux = float(loss)
    (loss + (y * dy).sum()).backward()
    return {"y": y, "aux": aux, "dx": x.grad, "dlogits": logits.grad, "dw": w.grad}


def flat(v):
    return v.detach().flatten().tolist() if torch.is_tensor(v) else [v]


print(json.dumps({f"{kind} {name}": flat(v) for kind in ("mixtral", "deepseek") for name, v in layer(kind).items()}, indent=0))
