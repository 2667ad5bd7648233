"""PyTorch's dense layer on the frames of a batch of films: forward, and backward to its weights.

python dense_torch.py --size 128 --films 200 --frames 100 --hidden 128 --iters 5 --threads 2
What the frames show makes no difference to a dense layer. Needs: torch. Prints one line of JSON.
"""
import argparse, json, time
import torch

ap = argparse.ArgumentParser()
ap.add_argument("--size", type=int, default=128)
ap.add_argument("--films", type=int, default=200)
ap.add_argument("--frames", type=int, default=100)
ap.add_argument("--hidden", type=int, default=128)
ap.add_argument("--iters", type=int, default=5)
ap.add_argument("--threads", type=int, default=2)
a = ap.parse_args()
torch.set_num_threads(a.threads)
torch.manual_seed(0)
frames = torch.zeros(a.films * a.frames, a.size * a.size)
frames[:, :: 20].uniform_()
layer = torch.nn.Linear(a.size * a.size, a.hidden)
outside = torch.randn(len(frames), a.hidden)
times = []
for _ in range(a.iters):
    start = time.perf_counter()
    layer.zero_grad()
    layer(frames).backward(outside)
    times.append((time.perf_counter() - start) * 1e3)
times = sorted(times[1:])
print(json.dumps({"ms_per_iter": round(times[len(times) // 2], 3), "ms_least": round(times[0], 3), "torch": torch.__version__}))
