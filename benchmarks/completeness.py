"""How much of an answer's change integrated gradients leave out: the bundled classifiers.

Of the first twelve bundled reviews, from blanks, the likeliest class, with as many steps as it
takes: the share of |F(x) - F(baseline)| that the tokens do not add up to.
"""

import sys
from pathlib import Path

from table import line

sys.path.insert(0, str(Path(__file__).parents[1]))

CLASSIFIERS = ("softmax", "ymish", "mixed")
TEXTS, MOST = 12, 1e-3


def main():
    """Three lines for each classifier."""
    from hgviz.files import resource

    lines = resource("sample/reviews.tsv").read_text("utf-8").splitlines()[1 : TEXTS + 1]
    texts = [line.split("\t")[0] for line in lines]
    for name in CLASSIFIERS:
        found = [attributed(resource(f"sample/{name}"), text) for text in texts]
        missing = [one.error for one in found]
        within = sum(one < MOST for one in missing)
        line(f"{name}, texts of {TEXTS} below {MOST:g}", str(within))
        line(f"{name}, largest share missing", f"{max(missing):.1e}", f"at most {MOST:g}")
        line(f"{name}, most steps", f"{max(one.steps for one in found):,}")


def attributed(folder, text):
    """What the answer to one text comes from."""
    from hgviz import tasks
    from hgviz.tasks.attribution import Question

    model = tasks.load(folder, "cpu")
    prompt, _ = tasks.read_prompts(model, text)
    number = int(model.run(prompt.ids).logits.argmax())
    return tasks.attribute(model, prompt, Question(number))


if __name__ == "__main__":
    main()
