#!/usr/bin/env python3
"""Writes the attacks that no editor writes well: deep nesting, run folders with right checksums and wrong contents, MAT files."""
import hashlib
import json
import struct
import zlib
from pathlib import Path

HERE = Path(__file__).parent


def write(name, contents):
    path = HERE / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())


def tensors(text, arrays):
    """A safetensors file with the checksum that the software expects: see crates/ramp/src/storage/tensors.rs."""
    total = hashlib.sha256()

    def add(piece):
        total.update(struct.pack("<Q", len(piece)) + piece)

    add(text.encode())
    header, data = {}, b""
    for name, (kind, shape, values) in sorted(arrays.items()):
        raw = struct.pack("<%d%s" % (len(values), {"F32": "f", "F64": "d"}[kind]), *values)
        add(name.encode())
        add((kind + "[" + ", ".join(map(str, shape)) + "]").encode())
        add(raw)
        header[name] = {"dtype": kind, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    header["sha256"] = {"dtype": "U8", "shape": [32], "data_offsets": [len(data), len(data) + 32]}
    data += total.digest()
    header["__metadata__"] = {"ramp": text}
    head = json.dumps(header).encode()
    head += b" " * (-len(head) % 8)
    return struct.pack("<Q", len(head)) + head + data


def run(name, contained, **changes):
    """A run folder whose manifest is right about its files."""
    for file, contents in contained.items():
        write(f"runs/{name}/{file}", contents)
    named = {
        file: {"bytes": len(contents), "sha256": hashlib.sha256(contents).hexdigest()}
        for file, contents in contained.items()
        if "/" not in file
    }
    manifest = {"version": 3, "software": "0.1.0", "finished": True, "files": named, **changes}
    write(f"runs/{name}/run.json", json.dumps(manifest))


SPEC = {
    "version": 2,
    "tree": {"factors": {"latents": ["z"], "observations": ["a", "b"], "factors": [["z", "a"], ["z", "b"]]}},
    "families": ["gaussian(1)"],
    "priors": {},
    "features": [1, 1],
    "tying": "separate",
    "inputs": "moments",
    "message": {"kind": "mlp", "hidden": [3]},
    "observation": {"kind": "mlp", "hidden": [3]},
    "networks": {},
    "init": "shared",
    "seed": 0,
}
NUMBER = {"kind": "number", "scale": {"kind": "standard", "mean": 0.0, "sd": 1.0}}
HEADER = {
    "model": SPEC,
    "encoder": {
        "chain": False,
        "observations": [{"name": n, "columns": [n], "encoding": NUMBER} for n in "ab"],
    },
    "chain": None,
    "population": 10,
    "data": 0,
}
SCALES = {f"scales.{n}": ("F64", [0], []) for n in ("lengths", "values", "scores")}


def weights(name, arrays=None, **changes):
    header = json.dumps({**HEADER, **changes})
    run(name, {"weights.safetensors": tensors(header, {**SCALES, **(arrays or {})})})


# Model files.
deep = 20000
write("models/deep_newick.toml", '[tree]\nnewick = "' + "(" * deep + "a,b" + ")z,c" * deep + ')root;"\n')
write("models/deep_array.toml", "[tree]\nfactors = " + "[" * 5000 + "]" * 5000 + "\n")
write("models/deep_keys.toml", "[" + ".".join(["a"] * 5000) + "]\nx = 1\n")

# Run folders.
run("null_header", {"weights.safetensors": tensors("null", {})})
run("no_weights", {})
run("traversal", {}, files={"../../victim.csv": {"bytes": 0, "sha256": "0" * 64}})
run("other_version", {}, version=4294967295)
write("runs/endless_manifest/run.json", "[" * 60000)
write("runs/long_manifest/run.json", " " * 200000 + "{}")
wide = {"kind": "mlp", "hidden": [16000, 16000]}
weights("giant_networks", model={**SPEC, "message": wide, "observation": wide})
weights("giant_belief", model={**SPEC, "families": ["gaussian(4096)"]})
weights("giant_chain", model={**SPEC, "tree": {"chain": {"steps": 2**62, "series": ["a", "b"]}}})
weights("no_population", population=0)
weights("features_overflow", model={**SPEC, "features": [2**63, 2**63]})
scaled = {"kind": "number", "scale": {"kind": "rank", "values": [], "scores": []}}
ranked = {"chain": False, "observations": [{"name": n, "columns": [n], "encoding": scaled} for n in "ab"]}
weights("falling_scale", {
    "scales.lengths": ("F64", [2], [2.0, 2.0]),
    "scales.values": ("F64", [4], [2.0, 1.0, 0.0, 1.0]),
    "scales.scores": ("F64", [4], [0.0, 1.0, 0.0, 1.0]),
}, encoder=ranked)
weights("endless_scale", {
    "scales.lengths": ("F64", [2], [1e300, float("nan")]),
    "scales.values": ("F64", [1], [0.0]),
    "scales.scores": ("F64", [1], [0.0]),
}, encoder=ranked)
claims = struct.pack("<Q", 2**40) + b"{}"
run("header_claims", {"weights.safetensors": claims})
overlap = json.dumps({
    "a": {"dtype": "F32", "shape": [2**62], "data_offsets": [0, 2**63]},
    "__metadata__": {"ramp": "{}"},
}).encode()
run("array_claims", {"weights.safetensors": struct.pack("<Q", len(overlap)) + overlap})

# Checkpoints in folders of trainings that were stopped.
state = {"version": 3, "iteration": 2**63, "since_best": 0, "best": None, "records": "", "identity": {}, "train": {}}
run("checkpoint_claims", {"checkpoint/checkpoint.safetensors": tensors(json.dumps(state), {})}, finished=False, files={})
run("checkpoint_noise", {"checkpoint/checkpoint.safetensors": bytes(range(256)) * 9}, finished=False, files={})
run("records_noise", {
    "checkpoint/checkpoint.safetensors": tensors("{}", {}),
    "checkpoint/records.jsonl": b"{" * 100000,
}, finished=False, files={})

# MAT files of version 5.
start = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<HH", 0x0100, 0x4D49)


def element(kind, data):
    return struct.pack("<II", kind, len(data)) + data + b"\0" * (-len(data) % 8)


def matrix(dims, count):
    return element(6, struct.pack("<II", 6, 0)) + element(5, struct.pack("<%di" % len(dims), *dims)) + element(1, b"joints") + \
        struct.pack("<II", 9, count)


write("joints/claims.mat", start + struct.pack("<II", 14, 2**32 - 1) + matrix([3, 14, 2**31 - 1], 2**32 - 8))
write("joints/negative.mat", start + element(14, matrix([3, -14, -1], 0)))
write("joints/bomb.mat", start + element(15, zlib.compress(element(14, matrix([3, 14, 2**20], 2**28) + b"\0" * (64 << 20)), 9)))
write("joints/nested.mat", start + element(15, zlib.compress(element(15, zlib.compress(b"\0" * 1000)))))
write("joints/short.mat", start[:100])
