"""RAMP on the hierarchical trees, in plain JAX: the peer to measure against, and an oracle for small cases.

python tree_jax.py --data linear --n 10000 --batch 1000 --iters 500 [--chunk 500] [--seed 0]
Needs: jax, optax, numpy, scipy. Prints a JSON line per report; the last one carries ms per iteration (compile excluded)
and the peak memory of the process.

`--network-only` times the messages alone, forward and backward, under the sum of their squares; `--pairwise-only` the free
energy of one latent with three messages, value and gradient, in ns per pair of samples.

The pairwise term is written in two ways, which agree in value and gradient:
  reference  `phi` on stacked (h, precision) pairs, as one would first write it. Chunks are checkpointed row by row inside
             `lax.map`; a checkpoint around the whole map makes its backward pass keep every row (48 GB at N = 10,000).
  fast       h and precision as separate planes, `phi(f)` once outside the checkpoint, log-sum-exp by hand. The default.
Tried on the pairwise term alone, value and gradient, N = 3,000, chunks of 500, JAX 0.10, 2 cores of a machine that was not
idle, so only as a guide; times as a fraction of `reference`: a checkpoint per chunk in place of per row 1.0; unrolled
chunks 0.8; separate planes with `phi(f)` inside the checkpoint 0.4; outside it 0.32; and log-sum-exp by hand 0.30 (kept); a
gradient written by hand 0.33. At N = 1,000 all at once the two forms are alike; chunks of 250 take about 0.6 of that.
"""
import argparse, json, resource, time
import jax, jax.numpy as jnp, numpy as np, optax
from scipy.stats import spearmanr

ap = argparse.ArgumentParser()
ap.add_argument("--data", choices=["linear", "nonlinear"], default="linear")
ap.add_argument("--n", type=int, default=10_000)
ap.add_argument("--batch", type=int, default=1_000, help="equal to --n for full batch")
ap.add_argument("--iters", type=int, default=500)
ap.add_argument("--chunk", type=int, default=0, help="rows of the pairwise matrix at a time; 0 = all at once")
ap.add_argument("--seed", type=int, default=0)
ap.add_argument("--every", type=int, default=100)
ap.add_argument("--pairwise", choices=["fast", "reference"], default="fast", help="how the pairwise term is written")
ap.add_argument("--network-only", action="store_true", help="time the messages' forward and backward alone")
ap.add_argument("--pairwise-only", action="store_true", help="time one latent's free energy and its gradient alone")
a = ap.parse_args()

K, NODES = 7, 15                                   # complete binary tree: latents 0..6, leaves 7..14
HIDDEN = 32 if a.data == "linear" else 64
parent = [None] + [(i - 1) // 2 for i in range(1, NODES)]
neighbours = {i: [] for i in range(NODES)}
for i in range(1, NODES):
    neighbours[i].append(parent[i]); neighbours[parent[i]].append(i)
edges = [(j, k) for k in range(K) for j in neighbours[k]]

rng = np.random.default_rng(a.seed)
V = np.zeros((NODES, a.n)); V[0] = rng.normal(size=a.n)
for i in range(1, NODES):
    if a.data == "linear":
        V[i] = V[parent[i]] + rng.normal(size=a.n)
    else:
        f = np.clip(1 / V[parent[i]], -15, 15)
        V[i] = np.sqrt(0.8) * (f - f.mean()) / f.std() + np.sqrt(0.2) * rng.normal(size=a.n)
Z, X = V[:K], jnp.array(V[K:], jnp.float32)

def init(key, sizes):
    return [(jax.random.normal(k, (m, n)) / np.sqrt(m), jnp.zeros(n))
            for k, m, n in zip(jax.random.split(key, len(sizes) - 1), sizes[:-1], sizes[1:])]

def mlp(p, x):
    for W, b in p[:-1]:
        x = jnp.tanh(x @ W + b)
    return x @ p[-1][0] + p[-1][1]

params = {f"{j}>{k}": init(key, [1 if j >= K else 2, HIDDEN, HIDDEN, 2])
          for (j, k), key in zip(edges, jax.random.split(jax.random.PRNGKey(a.seed), len(edges)))}
prior = jnp.array([0.0, 1.0])                      # (h, precision)
phi = lambda e: 0.5 * e[..., 0] ** 2 / e[..., 1] - 0.5 * jnp.log(e[..., 1])

def messages(p, x):
    msg = {}
    def get(j, k):
        if (j, k) not in msg:
            inp = x[j - K][:, None] if j >= K else sum(get(l, j) for l in neighbours[j] if l != k)
            out = mlp(p[f"{j}>{k}"], inp)
            msg[j, k] = jnp.stack([out[:, 0], out[:, 1] ** 2], -1)
        return msg[j, k]
    for j, k in edges: get(j, k)
    return msg

def pair_lse_reference(s, f):
    row = lambda sn: jax.nn.logsumexp(phi(sn + f) - phi(f))
    if a.chunk:
        return jax.lax.map(jax.checkpoint(row), s, batch_size=a.chunk)
    return jax.nn.logsumexp(phi(s[:, None] + f[None]) - phi(f)[None], -1)

def pair_lse_fast(s, f):
    fh, fp, phi_f = f[:, 0], f[:, 1], phi(f)
    def rows(s):
        h, p = s[:, :1] + fh, s[:, 1:] + fp
        v = 0.5 * h * h / p - 0.5 * jnp.log(p) - phi_f
        top = jax.lax.stop_gradient(v.max(-1, keepdims=True))
        return top[:, 0] + jnp.log(jnp.exp(v - top).sum(-1))
    if not a.chunk:
        return rows(s)
    rows, whole = jax.checkpoint(rows), len(s) // a.chunk * a.chunk
    out = jax.lax.map(rows, s[:whole].reshape(-1, a.chunk, 2)).reshape(-1)
    return out if whole == len(s) else jnp.concatenate([out, rows(s[whole:])])

pair_lse = {"fast": pair_lse_fast, "reference": pair_lse_reference}[a.pairwise]

def node_free_energy(msgs):
    s, m = sum(msgs), msgs[0].shape[0]
    out = (len(msgs) + 1) * phi(prior + s) - phi(prior)
    for e in msgs:
        out = out - phi(prior + e) - pair_lse(s, prior + e) + jnp.log(m)
    return out.mean()

def loss(p, x):
    msg = messages(p, x)
    return -sum(node_free_energy([msg[j, k] for j in neighbours[k]]) for k in range(K)) / K

@jax.jit
def posterior(p):
    msg = messages(p, X)
    return jnp.stack([prior + sum(msg[j, k] for j in neighbours[k]) for k in range(K)])

peak_mb = lambda: round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024e-6, 1)

if a.network_only or a.pairwise_only:
    if a.network_only:
        both = jax.jit(jax.value_and_grad(lambda p: sum((m ** 2).sum() for m in messages(p, X).values())))
        at = params
    else:
        both = jax.jit(jax.value_and_grad(node_free_energy))
        raw = rng.uniform(-1, 1, size=(3, a.n, 2))
        at = [jnp.array(np.stack([r[:, 0], r[:, 1] ** 2], -1), jnp.float32) for r in raw]
    jax.block_until_ready(both(at))
    times = []
    for _ in range(a.iters):
        t = time.perf_counter()
        jax.block_until_ready(both(at))
        times.append(time.perf_counter() - t)
    out = {"n": a.n, "ms_per_iter": round(1e3 * float(np.median(times)), 3), "ms_least": round(1e3 * min(times), 3)}
    if a.pairwise_only:
        out["ns_per_pair"] = round(1e9 * min(times) / (3 * a.n ** 2), 4)
    print(json.dumps({**out, "peak_mb": peak_mb(), "jax": jax.__version__}))
    raise SystemExit

opt = optax.adam(1e-3); state = opt.init(params)

@jax.jit
def step(p, st, x):
    l, g = jax.value_and_grad(loss)(p, x)
    u, st = opt.update(g, st)
    return optax.apply_updates(p, u), st, l

def correlations(mean):
    r = (lambda u, v: np.corrcoef(u, v)[0, 1]) if a.data == "linear" else (lambda u, v: spearmanr(u, v)[0])
    return [round(float(abs(r(mean[k], Z[k]))), 4) for k in range(K)]

if a.data == "linear":
    A = np.zeros((NODES, NODES))
    for i in range(1, NODES): A[i, parent[i]] = 1
    L = np.linalg.inv(np.eye(NODES) - A); C = L @ L.T
else:
    C = np.cov(V)
S = np.diag(np.r_[1 / np.sqrt(np.diag(C)[:K]), np.ones(NODES - K)])
Lam = np.linalg.inv(S @ C @ S)
exact_mean = -np.linalg.inv(Lam[:K, :K]) @ Lam[:K, K:] @ V[K:]
print(json.dumps({"gaussian": correlations(exact_mean), "variance": np.diag(np.linalg.inv(Lam[:K, :K])).round(4).tolist(),
                  "mean_field": (1 / np.diag(Lam[:K, :K])).round(4).tolist()}))

times = []
for it in range(1, a.iters + 1):
    idx = slice(None) if a.batch >= a.n else rng.permutation(a.n)[: a.batch]
    t = time.perf_counter()
    params, state, l = step(params, state, X[:, idx]); l.block_until_ready()
    if it > 1: times.append(time.perf_counter() - t)
    if it % a.every == 0 or it == a.iters:
        e = np.array(posterior(params))
        print(json.dumps({"iter": it, "free_energy": -float(l), "corr": correlations(e[..., 0] / e[..., 1]),
                          "variance": (1 / e[..., 1]).mean(1).round(4).tolist(),
                          "ms_per_iter": round(1e3 * float(np.median(times)), 2) if times else None,
                          "ms_least": round(1e3 * min(times), 2) if times else None,
                          "peak_mb": peak_mb(), "jax": jax.__version__}), flush=True)
