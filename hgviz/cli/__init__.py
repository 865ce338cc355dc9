"""The verbs from a terminal. Everything heavy is imported by the verb that needs it."""

from __future__ import annotations

import inspect
import traceback
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import typer

import hgviz
from hgviz.cli import (
    comparing,
    composing,
    drawing,
    explaining,
    habits,
    looking,
    making,
    pruning,
    reaching,
    redundancy,
    removing,
    studying,
    terminal,
)
from hgviz.cli.options import Window
from hgviz.cli.terminal import Stopped
from hgviz.errors import HgvizWarning, to_hgviz_error

INTERRUPTED = 130  # 128 and the number of SIGINT, as shells count
VERBS = (
    looking.demo,
    looking.info,
    making.capture,
    looking.map_,
    looking.logits,
    composing.rollout,
    habits.heads,
    redundancy.redundancy,
    explaining.attribute,
    reaching.reach,
    making.evaluate,
    pruning.importance,
    pruning.curve,
    removing.prune,
    comparing.compare,
    making.train,
    making.convert,
    drawing.figure,
    looking.selftest,
)

app = typer.Typer(
    name="hgviz",
    help="Look into transformer attention at every resolution.\n\n"
    "hgviz [PATH]... opens the window, on the sample or on checkpoints, captures, "
    "studies or a session. Write ./NAME for a file that has the name of a command.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_study = typer.Typer(help="Run many measurements that a study file (.toml) lists.")
app.add_typer(_study, name="study")


def _add(to: typer.Typer, verb: Callable[..., object]) -> None:
    """Paragraphs of its help flow: the lines of the source are no lines of a terminal."""
    paragraphs = inspect.cleandoc(verb.__doc__ or "").split("\n\n")
    words = "\n\n".join(one.replace("\n", " ") for one in paragraphs)
    to.command(verb.__name__.rstrip("_"), help=words)(verb)


_every: tuple[tuple[typer.Typer, Sequence[Any]], ...] = (
    (app, VERBS),
    (_study, studying.STUDY_VERBS),
)
for _to, _verbs in _every:
    for _verb in _verbs:
        _add(_to, _verb)


def main(arguments: Sequence[str], window: Window) -> int:
    """Run one command line and give its exit code: 0 done, 2 wrong use, 130 stopped, 1 anything
    else."""
    debug = "--debug" in arguments
    given = [one for one in arguments if one != "--debug"]
    try:
        with _warnings_as_lines():
            code = app(args=given, prog_name="hgviz", standalone_mode=False, obj=window) or 0
    except typer.TyperException as error:
        verb = getattr(getattr(error, "ctx", None), "command_path", "hgviz")
        said = error.format_message().replace("Value error, ", "").rstrip(".")
        said += "" if said.endswith("?") else "."
        terminal.complain(f"{said} `{verb} --help` shows what it takes.")
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


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Print each HgvizWarning as one line on standard error."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def line(message: Any, category: type[Warning], *place: Any, **more: Any) -> None:
            if issubclass(category, HgvizWarning):
                terminal.complain(str(message))
            else:
                show(message, category, *place, **more)

        warnings.showwarning = line
        warnings.simplefilter("always", HgvizWarning)
        yield


def verbs() -> frozenset[str]:
    """The names of all commands."""
    return frozenset(one.__name__.rstrip("_") for one in VERBS) | {"study"}


def _tell_version(wanted: bool) -> None:
    if wanted:
        terminal.say(f"hgviz {hgviz.__version__}")
        raise typer.Exit


@app.callback()
def always(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_tell_version, help="Print the version."),
    ] = False,
    debug: Annotated[
        bool,
        typer.Option("--debug", help="Print the traceback of an error (anywhere in the line)."),
    ] = False,
) -> None:
    """The options of no verb; main takes --debug out, it stands here for the help."""


__all__ = ["VERBS", "Window", "app", "main", "verbs"]
