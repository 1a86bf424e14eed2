# The optimizers and schedules of train/optim by their papers' formulas, in plain Python, whose numbers are float64.
# It prints what reference.json has:
#
#     python3 train/optim/testdata/reference.py > train/optim/testdata/reference.json
import json
from math import sqrt, pi, cos

STEPS = 4


def numbers(seed, n):
    """n numbers between -1 and 1: the generator of Park and Miller, which Go's tests have, too."""
    out = []
    for _ in range(n):
        seed = seed * 48271 % 2147483647
        out.append(seed / 2147483647 * 2 - 1)
    return out


def gradient(step, n):
    return numbers(1000 + step, n)


def norm(x):
    return sqrt(sum(e * e for e in x))


def lion(n, lr=.01, b1=.9, b2=.99, wd=.1):
    p, m = numbers(1, n), [0.] * n
    for step in range(1, STEPS + 1):
        for i, g in enumerate(gradient(step, n)):
            c = b1 * m[i] + (1 - b1) * g
            p[i] = p[i] - lr * ((c > 0) - (c < 0) + wd * p[i])
            m[i] = b2 * m[i] + (1 - b2) * g
    return p


def adam(n, lr=.01, b1=.9, b2=.999, eps=1e-8, wd=.1):
    p, m, v = numbers(1, n), [0.] * n, [0.] * n
    for step in range(1, STEPS + 1):
        for i, g in enumerate(gradient(step, n)):
            g += wd * p[i]
            m[i] = b1 * m[i] + (1 - b1) * g
            v[i] = b2 * v[i] + (1 - b2) * g * g
            p[i] -= lr * m[i] / (1 - b1 ** step) / (sqrt(v[i] / (1 - b2 ** step)) + eps)
    return p


def nadam(n, lr=.01, b1=.9, b2=.999, eps=1e-8, psi=.004, wd=.1):
    p, m, v, product = numbers(1, n), [0.] * n, [0.] * n, 1.
    for step in range(1, STEPS + 1):
        now, following = (b1 * (1 - .5 * .96 ** (t * psi)) for t in (step, step + 1))
        product *= now
        for i, g in enumerate(gradient(step, n)):
            g += wd * p[i]
            m[i] = b1 * m[i] + (1 - b1) * g
            v[i] = b2 * v[i] + (1 - b2) * g * g
            d = sqrt(v[i] / (1 - b2 ** step)) + eps
            p[i] -= lr * (1 - now) / (1 - product) * g / d + lr * following / (1 - product * following) * m[i] / d
    return p


def rmsprop(n, lr=.01, alpha=.99, eps=1e-8, mu=0., wd=.1, centered=False):
    p, v, m, mean = numbers(1, n), [0.] * n, [0.] * n, [0.] * n
    for step in range(1, STEPS + 1):
        for i, g in enumerate(gradient(step, n)):
            g += wd * p[i]
            v[i] = alpha * v[i] + (1 - alpha) * g * g
            mean[i] = alpha * mean[i] + (1 - alpha) * g
            m[i] = mu * m[i] + g / (sqrt(v[i] - centered * mean[i] ** 2) + eps)
            p[i] -= lr * m[i]
    return p


def adagrad(n, lr=.01, decay=.2, eps=1e-10, wd=.1, begin=.5):
    p, v = numbers(1, n), [begin] * n
    for step in range(1, STEPS + 1):
        for i, g in enumerate(gradient(step, n)):
            g += wd * p[i]
            v[i] += g * g
            p[i] -= lr / (1 + (step - 1) * decay) * g / (sqrt(v[i]) + eps)
    return p


def plateau(losses, rate=1., factor=.5, patience=2, threshold=1e-2, cooldown=1, floor=.1):
    best, bad, cooling, rates = float("inf"), 0, 0, []
    for loss in losses:
        if loss < best * (1 - threshold):
            best, bad = loss, 0
        else:
            bad += 1
        if cooling > 0:
            cooling -= 1
            bad = 0
        if bad > patience:
            if rate - max(rate * factor, floor) > 1e-8:
                rate = max(rate * factor, floor)
            cooling, bad = cooldown, 0
        rates.append(rate)
    return rates


def lamb(n, lr=.01, b1=.9, b2=.999, eps=1e-6, wd=.1):
    p, m, v = numbers(1, n), [0.] * n, [0.] * n
    for step in range(1, STEPS + 1):
        u = []
        for i, g in enumerate(gradient(step, n)):
            m[i] = b1 * m[i] + (1 - b1) * g
            v[i] = b2 * v[i] + (1 - b2) * g * g
            u.append(m[i] / (1 - b1 ** step) / (sqrt(v[i] / (1 - b2 ** step)) + eps) + wd * p[i])
        ratio = norm(p) / norm(u)
        p = [x - lr * ratio * y for x, y in zip(p, u)]
    return p


def adafactor(rows, cols, lr=.01, power=.8, floor=1e-3, clip=1., wd=.1):
    n = rows * cols
    p, row, col, square = numbers(1, n), [0.] * rows, [0.] * cols, [0.] * n
    for step in range(1, STEPS + 1):
        g = gradient(step, n)
        keep = 1 - step ** -power
        if rows > 1 and cols > 1:
            for i in range(rows):
                row[i] = keep * row[i] + (1 - keep) * sum(g[i * cols + j] ** 2 for j in range(cols)) / cols
            for j in range(cols):
                col[j] = keep * col[j] + (1 - keep) * sum(g[i * cols + j] ** 2 for i in range(rows)) / rows
            v = [row[i] * col[j] / (sum(row) / rows) for i in range(rows) for j in range(cols)]
        else:
            square = [keep * s + (1 - keep) * x * x for s, x in zip(square, g)]
            v = square
        u = [x / sqrt(s) for x, s in zip(g, v)]
        rms = norm(u) / sqrt(n)
        alpha = max(floor, norm(p) / sqrt(n)) * min(lr, 1 / sqrt(step))
        p = [x * (1 - lr * wd) - alpha * y / max(1, rms / clip) for x, y in zip(p, u)]
    return p


def matmul(a, b):
    return [[sum(x * y for x, y in zip(r, c)) for c in zip(*b)] for r in a]


def orthogonal(x, iterations=5):
    flip = len(x) > len(x[0])
    if flip:
        x = [list(c) for c in zip(*x)]
    size = max(sqrt(sum(e * e for r in x for e in r)), 1e-7)
    x = [[e / size for e in r] for r in x]
    for _ in range(iterations):
        a = matmul(x, [list(c) for c in zip(*x)])
        aa = matmul(a, a)
        b = [[-4.7750 * s + 2.0315 * t for s, t in zip(r, q)] for r, q in zip(a, aa)]
        x = [[3.4445 * s + t for s, t in zip(r, q)] for r, q in zip(x, matmul(b, x))]
    if flip:
        x = [list(c) for c in zip(*x)]
    return x


def muon(rows, cols, nesterov=True, match=False, lr=.02, mu=.95, wd=.1):
    n = rows * cols
    p, m = numbers(1, n), [0.] * n
    for step in range(1, STEPS + 1):
        g = gradient(step, n)
        m = [mu * s + (1 - mu) * x for s, x in zip(m, g)]
        u = [(1 - mu) * x + mu * s for s, x in zip(m, g)] if nesterov else m
        o = orthogonal([u[i * cols:(i + 1) * cols] for i in range(rows)])
        rate = lr * (.2 * sqrt(max(rows, cols)) if match else sqrt(max(1, rows / cols)))
        p = [x * (1 - lr * wd) - rate * y for x, y in zip(p, [e for r in o for e in r])]
    return p


def schedule(step, warm, total, peak, rest):
    return peak * step / warm if warm and step <= warm else rest(step, warm, total, peak)


SCHEDULES = {
    "constant": lambda s, w, t, p: p,
    "linear": lambda s, w, t, p: p + (.1 - p) * min(1, (s - w) / (t - w)),
    "cosine": lambda s, w, t, p: .1 + (p - .1) * .5 * (1 + cos(pi * min(1, (s - w) / (t - w)))),
    "wsd": lambda s, w, t, p: p if s <= t - 30 else p + (.1 - p) * min(1, (s - (t - 30)) / 30),
    "inverse sqrt": lambda s, w, t, p: p * sqrt(max(w, 1) / s),
    "stairs": lambda s, w, t, p: p * .5 ** ((s - w - 1) // 25),
}

def half_cosine(a, b, x):
    return b + (a - b) * .5 * (1 + cos(pi * x))


def one_cycle(s, rise=30, total=100, start=.08, peak=2., floor=.001):
    if s <= rise:
        return half_cosine(start, peak, (s - 1) / (rise - 1))
    return half_cosine(peak, floor, min(1, (s - rise) / (total - rise)))


def restarts(s, warm, total, peak, first=10, times=2):
    done, period = s - warm - 1, first
    while done >= period:
        done, period = done - period, period * times
    return half_cosine(peak, .1, done / period)


SCHEDULES["restarts"] = restarts

out = {
    "lion 5 x 3": lion(15),
    "adam": adam(15),
    "nadam": nadam(15),
    "rmsprop": rmsprop(15),
    "rmsprop centered momentum": rmsprop(15, mu=.9, centered=True),
    "adagrad": adagrad(15),
    "plateau": plateau([1 + 10 / (s + 1) for s in range(30)] + [1.5 + .1 * (s % 7) for s in range(30)]),
    "one cycle": [one_cycle(s) for s in range(1, 121)],
}
for rows, cols in ((3, 5), (5, 3), (1, 7), (7, 1)):
    shape = f" {rows} x {cols}"
    out["lamb" + shape] = lamb(rows * cols)
    out["adafactor" + shape] = adafactor(rows, cols)
    out["muon" + shape] = muon(rows, cols)
    out["muon plain match" + shape] = muon(rows, cols, nesterov=False, match=True)
for name, rest in SCHEDULES.items():
    for warm in (0, 10):
        out[f"{name} {warm}"] = [schedule(s, warm, 100, 2., rest) for s in range(1, 121)]
print(json.dumps(out, indent=0))
