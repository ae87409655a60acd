"""`lloydia --install-completion`: the Tab key completes commands, options, choices and files."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

Shell = Literal["bash", "zsh", "fish"]
SHELLS: tuple[Shell, ...] = ("bash", "zsh", "fish")

# The parser's script has bash list files, and then bash neither quotes their names nor enters
# folders.  Bash does both where the script offers nothing and `complete` has this option.
FILES = 'COMPREPLY=( $(compgen -f -- "${cur}") )'
NOTHING = "COMPREPLY=()"
COMPLETE = "complete -F "
COMPLETE_FILES = "complete -o default -F "

# fish reads choices as words of a command line, where the bars of k-means|| are pipes.
CHOICES = re.compile(r"(?<= -a ')[^']*")


def install_completion(
    shell: Annotated[
        Shell | None, Parameter(help="bash, zsh or fish; by default the one that runs lloydia.")
    ] = None,
    /,
) -> None:
    """Make the Tab key complete commands, options, choices and file names.

    It writes a script into your home folder, and for bash and zsh a line that loads it into
    ~/.bashrc or ~/.zshrc.  Run it again after an update of Lloydia.

    Example: lloydia --install-completion zsh
    """
    from cyclopts.completion.install import add_to_rc_file, get_default_completion_path

    found = shell or _running()
    path = get_default_completion_path(found, "lloydia").absolute()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(script(found), encoding="utf-8")
    print(f"{path} completes lloydia in {found}.")
    if found != "fish":
        startup = Path.home() / f".{found}rc"
        added = add_to_rc_file(path, "lloydia", found)
        print(f"{startup} {'now loads' if added else 'loads'} it.")
    if found == "zsh":
        print("It works if ~/.zshrc also has the line: autoload -Uz compinit && compinit")
    print(f"Open a new terminal to use it, or run: exec {found}")


def script(shell: Shell) -> str:
    """Return the script that completes the command line in a shell."""
    from lloydia.cli.app import app

    text = app.generate_completion(prog_name="lloydia", shell=shell)
    if shell == "bash":
        return text.replace(FILES, NOTHING).replace(COMPLETE, COMPLETE_FILES)
    if shell == "fish":
        return CHOICES.sub(lambda choices: choices[0].replace("|", r"\|"), text)
    return text


def _running() -> Shell:
    """Return the shell that runs this command.

    Raises
    ------
    ValueError
        It is none of those that are completed in.
    """
    from cyclopts.completion.detect import ShellDetectionError, detect_shell

    found: str | None = None
    with suppress(ShellDetectionError):
        found = detect_shell()
    for shell in SHELLS:
        if found == shell:
            return shell
    what = f"{found} is not supported" if found else "it cannot be seen which shell this is"
    raise ValueError(f"{what}: name bash, zsh or fish, such as lloydia --install-completion bash.")
