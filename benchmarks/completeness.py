"""How much of an answer's change integrated gradients leave out: the bundled classifiers.

Of the first twelve bundled reviews, from blanks, the likeliest class, 256 steps: the share of
|F(x) - F(baseline)| that the tokens do not add up to.
"""

import sys
from pathlib import Path

from table import line

sys.path.insert(0, str(Path(__file__).parents[1]))

CLASSIFIERS = ("softmax", "ymish", "mixed")
TEXTS, STEPS, MOST = 12, 256, 1e-3


def main():
    """Two lines for each classifier."""
    from hgviz.files import resource

    lines = resource("sample/reviews.tsv").read_text("utf-8").splitlines()[1 : TEXTS + 1]
    texts = [line.split("\t")[0] for line in lines]
    for name in CLASSIFIERS:
        missing = [missed(resource(f"sample/{name}"), text) for text in texts]
        within = sum(one < MOST for one in missing)
        line(f"{name}, texts of {TEXTS} below {MOST:g}", str(within))
        line(f"{name}, largest share missing", f"{max(missing):.1e}", f"at most {MOST:g}")


def missed(folder, text):
    """What is missing of one text's answer, as a share of it."""
    from hgviz import tasks
    from hgviz.tasks.attribution import Question

    model = tasks.load(folder, "cpu")
    prompt, _ = tasks.read_prompts(model, text)
    number = int(model.run(prompt.ids).logits.argmax())
    return tasks.attribute(model, prompt, Question(number, None, steps=STEPS)).error


if __name__ == "__main__":
    main()
