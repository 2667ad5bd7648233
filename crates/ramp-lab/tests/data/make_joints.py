#!/usr/bin/env python3
"""Writes joints.mat beside this script: 60 made-up poses as the Leeds Sports Poses have them, 14 joints × (x, y, seen) × poses.

A MATLAB file of version 5 with one compressed array of doubles, as MATLAB and SciPy write them; nothing but the standard library is
needed. A figure walks, leans and waves; every seventh joint of every third pose is out of sight.
"""
import math
import pathlib
import struct
import zlib

POSES = 60
# Joint by joint: the joint it hangs on (None for the neck), the limb's length and its angle when standing, and how far it swings.
BODY = {
    12: (None, 0, 0, 0), 13: (12, 18, -90, 15), 8: (12, 14, 170, 10), 9: (12, 14, 10, 10), 7: (8, 22, 100, 50), 6: (7, 20, 90, 60),
    10: (9, 22, 80, 50), 11: (10, 20, 90, 60), 2: (12, 40, 100, 12), 3: (12, 40, 80, 12), 1: (2, 30, 95, 35), 0: (1, 28, 95, 25),
    4: (3, 30, 85, 35), 5: (4, 28, 85, 25),
}


def pose(number):
    joints = {}
    for joint, (above, length, angle, swing) in BODY.items():
        x, y = joints[above] if above is not None else (80.0 + number % 9, 50.0 + number % 7)
        turn = math.radians(angle + swing * math.sin(0.37 * number + 1.3 * joint) + 10 * math.sin(0.11 * number))
        joints[joint] = (x + length * math.cos(turn), y + length * math.sin(turn))
    return [(*joints[j], 0.0 if number % 3 == 0 and (number + j) % 7 == 0 else 1.0) for j in range(14)]


def element(kind, content):
    padded = content + b"\0" * (-len(content) % 8)
    return struct.pack("<II", kind, len(content)) + padded


def main():
    numbers = []
    for number in range(POSES):
        joints = pose(number)
        # The first index runs fastest: joints, then parts, then poses.
        numbers += [joints[j][part] for part in range(3) for j in range(14)]
    matrix = element(14, b"".join([
        element(6, struct.pack("<II", 6, 0)),
        element(5, struct.pack("<III", 14, 3, POSES)),
        element(1, b"joints"),
        element(9, struct.pack(f"<{len(numbers)}d", *numbers)),
    ]))
    packed = zlib.compress(matrix, 9)
    header = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H", 0x0100) + b"IM"
    file = header + struct.pack("<II", 15, len(packed)) + packed
    pathlib.Path(__file__).with_name("joints.mat").write_bytes(file)


if __name__ == "__main__":
    main()
