"""The command line. Each command imports its heavy dependencies itself."""

from __future__ import annotations

import inspect
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer
from typer.completion import completion_init  # type: ignore[attr-defined]

import hgviz
from hgviz.cli import captures, comparison, drawing, heads, models, pruning, studies, terminal
from hgviz.cli.options import Window, expanded
from hgviz.cli.terminal import Stopped
from hgviz.errors import HgvizWarning, to_hgviz_error

INTERRUPTED = 130  # 128 and the number of SIGINT, as shells count
VERBS: dict[str, tuple[Callable[..., object], ...]] = {  # by the headings of the help
    "Inspect": (models.demo, captures.capture, heads.heads, heads.attribute, drawing.figure),
    "Measure": (models.evaluate, heads.reach, heads.redundancy, captures.rollout),
    "Prune": (pruning.importance, pruning.curve, pruning.prune),
    "Compare": (comparison.compare,),
    "Train": (models.train,),
    "Files": (
        models.info,
        captures.tokens,
        captures.map_,
        captures.logits,
        models.convert,
        models.docs,
        models.selftest,
    ),
}
EXAMPLES = {  # of commands, the words after hgviz; they use files of the sample, and each other's
    "demo": "demo",
    "capture": 'capture sample/hourglass --text "The sea" -o sea.h5',
    "heads": "heads sample/first.h5",
    "attribute": 'attribute sample/softmax --text "A fine film"',
    "figure": "figure sample/first.h5 --kind map --head 12.1 -o map.pdf",
    "evaluate": "evaluate sample/softmax --data sample/reviews.tsv",
    "reach": 'reach sample/hourglass --text "The sea"',
    "redundancy": "redundancy sample/softmax",
    "rollout": "rollout sample/first.h5 -o rollout.npy",
    "importance": "importance sample/softmax --data sample/reviews.tsv --limit 64 -o study.h5",
    "curve": "curve study.h5 sample/softmax --data sample/reviews.tsv",
    "prune": "prune sample/softmax --study study.h5 --keep 50% -o smaller",
    "compare": 'compare sample/softmax sample/ymish --text "A fine film"',
    "study run": "study run study.toml -o results",
    "study status": "study status results",
    "study report": "study report results -o results.html",
    "train": "train plan.toml -o model",
    "info": "info sample/hourglass",
    "map": "map sample/first.h5 --head 12.1 -o map.npy",
    "logits": 'logits sample/softmax --text "A fine film" -o logits.npy',
    "tokens": 'tokens sample/hourglass --text "The sea"',
    "docs": "docs how-to/prune",
    "convert": "convert sample/softmax -o copy",
    "selftest": "selftest",
}

app = typer.Typer(
    name="hgviz",
    help="Inspect transformer attention at every resolution.\n\n"
    "hgviz [PATH]... opens checkpoints, captures, studies or a session in the window. "
    "Write ./NAME for a file whose name is that of a command.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_study = typer.Typer(help="Run the measurements that a study file (.toml) lists.")


def _add(to: typer.Typer, verb: Callable[..., object], heading: str | None = None) -> None:
    """Add a verb as a command; the paragraphs of its docstring and an example are its help."""
    name = verb.__name__.rstrip("_")
    example = EXAMPLES[name if to is app else f"study {name}"]
    paragraphs = inspect.cleandoc(verb.__doc__ or "").split("\n\n")
    text = "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)
    text += f"\n\nExample: hgviz {example}"
    to.command(name, help=text, rich_help_panel=heading)(expanded(verb))


for _heading, _verbs in VERBS.items():
    for _verb in _verbs:
        _add(app, _verb, _heading)
for _verb in studies.STUDY_VERBS:
    _add(_study, _verb)
app.add_typer(_study, name="study", rich_help_panel="Compare")


def main(arguments: Sequence[str], window: Window) -> int:
    """Run one command line and give its exit code: 0 done, 2 wrong use, 130 stopped, 1 anything
    else."""
    completion_init()  # without it shells are unknown, since the options of typer are left out
    debug, terminal.quiet = "--debug" in arguments, "--quiet" in arguments
    words = [word for word in arguments if word not in ("--debug", "--quiet")]
    try:
        with _warnings_as_lines():
            code = app(args=words, prog_name="hgviz", standalone_mode=False, obj=window) or 0
            _flush_output()
    except typer.TyperException as error:
        verb = getattr(getattr(error, "ctx", None), "command_path", "hgviz")
        message = error.format_message().replace("Value error, ", "").rstrip(".")
        message = re.sub(r" \(Possible options: ([^,)]*).*\)$", r". Did you mean \1?", message)
        message += "" if message.endswith("?") else "."
        terminal.complain(f"{message} See `{verb} --help`.")
        return error.exit_code
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except SystemExit:
        raise
    except BaseException as error:  # a panic in a Rust library is no Exception
        if debug:
            traceback.print_exc()
        terminal.complain(" ".join(to_hgviz_error(error).lines))
        return INTERRUPTED if isinstance(error, Stopped) else 1
    if code == INTERRUPTED:
        terminal.complain("Stopped.")
    return int(code)


def _flush_output() -> None:
    """Write what is left for standard output now: at exit Python would print a traceback of a full
    disk, or of a reader such as `head` that has ended. Raises OSError, SystemExit for the latter.
    """
    try:
        print(end="", flush=True)
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            raise SystemExit(1) from None
        raise


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Print each HgvizWarning as one line on standard error."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def line(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, HgvizWarning):
                terminal.remark(str(message))
            else:
                show(message, category, *place, **more)

        warnings.showwarning = line
        warnings.simplefilter("always", HgvizWarning)
        yield


def verbs() -> frozenset[str]:
    """The names of all commands."""
    names = (verb.__name__.rstrip("_") for group in VERBS.values() for verb in group)
    return frozenset(names) | {"study"}


def _print_version(wanted: bool) -> None:
    if wanted:
        terminal.say(f"hgviz {hgviz.__version__}")
        raise typer.Exit


@app.callback()
def always(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version."
        ),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Print tracebacks (allowed anywhere in the line)."),
    ] = False,
    quiet: Annotated[
        bool,
        typer.Option("--quiet", help="Print results and errors only (allowed anywhere)."),
    ] = False,
) -> None:
    """The options of every command; main removes --debug and --quiet, the help needs them here."""


__all__ = ["VERBS", "Window", "app", "main", "verbs"]
