"""What the sample can do, measured on the stored file: bits per byte at several lengths, its heads.

Give the held-out text (wikitext2-valid.txt) as the argument (20 minutes on two cores); without it,
the first 64 kB of Python's own help texts are read, further from what the sample was trained on.
"""

import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from pydoc_data.topics import topics

import torch

from hgviz import tasks
from hgviz.files import resource
from hgviz.models.objectives import bits_per_byte
from hgviz.tasks.heads import role_evidence

LENGTHS = (256, 512, 1024, 2048, 4096)
HELP = "".join(topics.values()).encode()[: 1 << 16]
WINDOWS, WINDOW = 8, 1024  # texts that the heads are measured on


def main():
    """Print the table of lengths, then the heads whose role holds on most of the texts."""
    given = Path(sys.argv[1]).read_bytes() if sys.argv[1:] else HELP
    model = tasks.load(resource("sample/hourglass"), "cpu")
    text = torch.frombuffer(bytearray(given), dtype=torch.uint8)
    print(f"{len(text):,} bytes\n{'window':>8}{'bits per byte':>15}{'seconds':>9}")
    for length in LENGTHS:
        start = time.perf_counter()
        bits = bits_per_byte(model.module, text, length)
        print(f"{length:8,}{bits:15.3f}{time.perf_counter() - start:9.0f}")
    named(model, given)


def named(model, given):
    """Every head with the role most of the texts agree on, and its mean share of weight there."""
    roles, scores, words = defaultdict(Counter), defaultdict(list), {}
    for i in range(WINDOWS):
        start = i * (len(given) // WINDOWS)
        piece = given[start : start + WINDOW].decode(errors="ignore")
        capture = tasks.capture(model, model.tokenize(piece))
        for head, fact in roles(capture).items():
            if fact.role:
                roles[head][fact.role] += 1
                scores[head, fact.role].append(fact.score)
                words[head, fact.role] = role_evidence(fact)
    print(f"\n{WINDOWS} texts of {WINDOW:,} bytes\n{'head':>6}{'texts':>7}{'share':>7}  role")
    for head in sorted(roles):
        role, count = roles[head].most_common(1)[0]
        if 2 * count > WINDOWS:
            mean = sum(scores[head, role]) / count
            print(f"{head!s:>6}{count:7}{mean:7.2f}  {role} ({words[head, role]})")


if __name__ == "__main__":
    main()
