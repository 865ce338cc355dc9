"""The vision transformer of the guide: a small ViT that names the colour of the one thing in a
picture that has one.

    python docs/studies/colours.py DIR

Pictures are drawn here: a red, green, blue or yellow disc or square among grey ones on grey noise.
Training takes some five minutes of one processor core.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import torch
import transformers
from PIL import Image, ImageDraw

SIDE, STEPS, BATCH = 64, 1200, 64
COLOURS = {"red": (210, 60, 50), "green": (60, 160, 70), "blue": (60, 90, 210),
           "yellow": (225, 200, 60)}  # fmt: skip
NAMES = tuple(COLOURS)


def picture(random, name=None):
    """A picture (SIDE, SIDE, 3) and the number of its colour."""
    number = int(random.integers(len(NAMES))) if name is None else NAMES.index(name)
    grey = int(random.integers(90, 170))
    base = grey + random.normal(0, 14, (SIDE, SIDE, 1)) + random.normal(0, 4, (SIDE, SIDE, 3))
    image = Image.fromarray(np.clip(base, 0, 255).astype(np.uint8))
    pen = ImageDraw.Draw(image)
    for at in range(4):  # the last lies above the others
        radius = int(random.integers(5, 10))
        x, y = (int(one) for one in random.integers(radius, SIDE - radius, 2))
        shade = int(random.integers(30, 225))
        fill = COLOURS[NAMES[number]] if at == 3 else (shade,) * 3
        draw = pen.ellipse if random.integers(2) else pen.rectangle
        draw((x - radius, y - radius, x + radius, y + radius), fill=fill)
    return np.asarray(image), number


def batch(random, count):
    """Pictures as the model reads them, and their classes."""
    made = [picture(random) for _ in range(count)]
    pixels = np.stack([one for one, _ in made]).transpose(0, 3, 1, 2).astype(np.float32) / 255
    return torch.from_numpy((pixels - 0.5) / 0.5), torch.tensor([one for _, one in made])


def main(out):
    """Train it, and write it with its processor."""
    torch.manual_seed(0)
    random = np.random.default_rng(0)
    processor = transformers.ViTImageProcessor(size={"height": SIDE, "width": SIDE})
    config = transformers.ViTConfig(
        hidden_size=64, num_hidden_layers=4, num_attention_heads=4, intermediate_size=128,
        image_size=SIDE, patch_size=8, num_labels=len(NAMES), hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0, id2label=dict(enumerate(NAMES)),
        label2id={name: at for at, name in enumerate(NAMES)},
    )  # fmt: skip
    model = transformers.ViTForImageClassification(config)
    learn = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.05)
    rate = torch.optim.lr_scheduler.OneCycleLR(learn, 1e-3, STEPS)
    for step in range(STEPS):
        pixels, wanted = batch(random, BATCH)
        loss = model(pixel_values=pixels, labels=wanted).loss
        learn.zero_grad()
        loss.backward()
        learn.step()
        rate.step()
        if step % 100 == 99:
            print(step + 1, float(loss), flush=True)
    model.eval()
    test = np.random.default_rng(1)
    with torch.no_grad():
        pixels, wanted = batch(test, 1000)
        right = float((model(pixel_values=pixels).logits.argmax(-1) == wanted).float().mean())
    print(f"right: {right:.3f} of 1,000 new pictures")
    model.save_pretrained(out / "colours")
    processor.save_pretrained(out / "colours")
    for number, name in enumerate(NAMES):
        made = picture(np.random.default_rng(20 + number), name)[0]
        Image.fromarray(made).save(out / f"{name}.png")
    write_new(out)


def write_new(out):
    """200 pictures that the model has not seen, and the table new.csv of their colours."""
    random, rows = np.random.default_rng(2), ["image,label"]
    (out / "new").mkdir(exist_ok=True)
    for at in range(200):
        made, number = picture(random)
        Image.fromarray(made).save(out / f"new/{at}.png")
        rows.append(f"new/{at}.png,{NAMES[number]}")
    (out / "new.csv").write_text("\n".join(rows) + "\n", "utf-8")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
