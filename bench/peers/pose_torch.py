"""RAMP on poses in plain PyTorch: 14 joints, a CNN each, messages along limbs, nodewise free energies. A peer to measure.

python pose_torch.py --batch 200 --iters 8 --threads 2
Patches are blank paper with lines at random; about 88 % of them are there, as in the Leeds Sports Poses. The same loss as the
reference: (J+1) Φ(q) − Φ(prior) − Σ_j [Φ(f_j) + logsumexp_m(Φ(s + f_jm) − Φ(f_jm)) − log M], with missing messages left out.
Needs: torch. Prints one line of JSON.
"""
import argparse, json, math, resource, time
import torch
from torch import nn

ap = argparse.ArgumentParser()
ap.add_argument("--batch", type=int, default=200)
ap.add_argument("--iters", type=int, default=8)
ap.add_argument("--threads", type=int, default=2)
ap.add_argument("--seed", type=int, default=0)
a = ap.parse_args()
torch.set_num_threads(a.threads)
torch.manual_seed(a.seed)

LIMBS = [(13, 12), (12, 8), (12, 9), (12, 2), (12, 3), (8, 7), (7, 6), (9, 10), (10, 11), (2, 1), (1, 0), (3, 4), (4, 5)]
JOINTS, D = 14, 6
near = [[b if j == x else x for x, b in LIMBS if j in (x, b)] for j in range(JOINTS)]
ROW, COL = torch.tril_indices(D, D)
N = D + len(ROW)

def cnn():
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, 1, 1), nn.ReLU(), nn.Conv2d(32, 64, 3, 2, 1), nn.ReLU(),
        nn.Conv2d(64, 32, 3, 2, 1), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 8 * 8, N))

see = nn.ModuleList(cnn() for _ in range(JOINTS))
say = nn.ModuleDict({f"{i}>{j}": nn.Sequential(nn.Linear(N, 64), nn.Tanh(), nn.Linear(64, N))
                     for j in range(JOINTS) for i in near[j]})
params = list(see.parameters()) + list(say.parameters())
opt = torch.optim.Adam(params, lr=1e-4)

def constrain(raw):
    """h, and the precision C Cᵀ."""
    c = raw.new_zeros(*raw.shape[:-1], D, D)
    c[..., ROW, COL] = raw[..., D:]
    return raw[..., :D], c @ c.mT

def flat(h, p):
    return torch.cat([h, p[..., ROW, COL]], -1)

EYE = torch.eye(D)

def phi(h, p):
    l = torch.linalg.cholesky(p)
    y = torch.linalg.solve_triangular(l, h.unsqueeze(-1), upper=False).squeeze(-1)
    return 0.5 * (y * y).sum(-1) - l.diagonal(dim1=-2, dim2=-1).log().sum(-1)

def step(x, there):
    b = x.shape[1]
    seen = []
    for j in range(JOINTS):
        h, p = constrain(see[j](x[j]))
        seen.append((h * there[j, :, None], p * there[j, :, None, None]))
    messages = {}

    def message(i, j):
        """From joint i to joint j."""
        if (i, j) not in messages:
            h, p = seen[i]
            for k in near[i]:
                if k != j:
                    mh, mp, _ = message(k, i)
                    h, p = h + mh, p + mp
            h, p = constrain(say[f"{i}>{j}"](flat(h, p)))
            messages[i, j] = (h, p, torch.ones(b))
        return messages[i, j]

    total = 0.0
    for j in range(JOINTS):
        heard = [(*seen[j], there[j])] + [message(i, j) for i in near[j]]
        sh, sp = sum(m[0] for m in heard), sum(m[1] for m in heard)
        count = sum(m[2] for m in heard)
        total = total + ((count + 1) * phi(sh, EYE + sp)).sum()
        for h, p, mask in heard:
            own = phi(h, EYE + p)
            pairs = phi(sh[:, None] + h[None], EYE + sp[:, None] + p[None]) - own[None]
            pairs = pairs.masked_fill(mask[None] == 0, -math.inf)
            term = own + torch.logsumexp(pairs, 1) - mask.sum().log()
            total = total - (term * mask).sum()
    return total / (JOINTS * b)

def patches():
    x = torch.zeros(JOINTS, a.batch, 1, 32, 32)
    at = torch.randint(0, 32, (JOINTS, a.batch, 2))
    for j in range(JOINTS):
        for n in range(a.batch):
            x[j, n, 0, at[j, n, 0]] = 1.0
            x[j, n, 0, :, at[j, n, 1]] = 1.0
    return x, (torch.rand(JOINTS, a.batch) < 0.88).float()

x, there = patches()
times = []
for _ in range(a.iters):
    start = time.perf_counter()
    opt.zero_grad()
    loss = -step(x, there)
    loss.backward()
    opt.step()
    times.append((time.perf_counter() - start) * 1e3)
times = sorted(times[1:])
print(json.dumps({"ms_per_iter": round(times[len(times) // 2], 2), "ms_least": round(times[0], 2), "free_energy": -loss.item(),
                  "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, "torch": torch.__version__}))
