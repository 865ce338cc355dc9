"""Studies of many runs to be opened and run by turns: one that takes seconds, one with failures."""

from pathlib import Path

from tests.studying import make_sweep, study_file, without, write

MODEL = """
[[models]]
name = "tiny"
family = "bert"
goal = "classes"
d_model = 16
n_heads = 2
n_layers = 2
max_positions = 32
segments = 0
"""
TINY = f"""
asks = ["score", "curve", "compare"]
activations = ["softmax", "ymish"]
methods = ["michel"]
{MODEL}[tokenizer]
kind = "wordpiece"
size = 400
[recipe]
steps = 4
batch = 8
[[data]]
name = "reviews"
train = ["sample/reviews.tsv"]
valid = "sample/reviews.tsv"
[curve]
limit = 40
points = 3
random = 2
[compare]
texts = 2
limit = 8
"""


def make(folder: Path) -> None:
    """The file of one that is not begun, and the folder of one of which some cells failed."""
    folder.mkdir()
    (folder / "tiny.toml").write_text(TINY)
    whole = make_sweep(activations=("softmax",), seeds=(1, 2), methods=("michel",))
    first, second = (one.cell.key for one in whole.of("curve")[:2])
    some = without(whole, first, state="failed", line="the machine has too little memory")
    some = without(some, second)
    text = study_file(activations=("softmax",), seeds=(1, 2), methods=("michel",))
    write(folder / "failed", text, some.standings)
