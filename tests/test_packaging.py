"""What is shipped: wheel and sdist, the program from an empty folder, `doctor`, and completion in shells."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

import fairevals
from fairevals.cli import doctor
from fairevals.cli.main import COMMANDS, main, make_parser

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def run(*words, cwd, **env):
    settings = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "FAIREVALS"))}
    done = subprocess.run(
        [str(word) for word in words],
        cwd=cwd,
        env=settings | env,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the wheel and the sdist."""
    if find_spec("hatchling") is None:
        pytest.skip("hatchling is not installed: pip install hatchling")
    out = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", out, cwd=ROOT)
    return out


@pytest.fixture(scope="module")
def installed(built, tmp_path_factory):
    """The wheel in a folder of its own, with nothing of the repository beside it."""
    if find_spec("pip") is None:
        pytest.skip("pip is not installed")
    target = tmp_path_factory.mktemp("site")
    (wheel,) = built.glob("*.whl")
    options = ("--no-deps", "--no-index", "--no-compile", "--disable-pip-version-check", "--quiet")
    run(sys.executable, "-m", "pip", "install", *options, "--target", target, wheel, cwd=target)
    return target


def test_versions_agree(built):
    names = sorted(path.name for path in built.iterdir())
    version = fairevals.__version__
    assert names == [f"fairevals-{version}-py3-none-any.whl", f"fairevals-{version}.tar.gz"]


def test_the_wheel_has_the_whole_package_and_nothing_else(built):
    (wheel,) = built.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    there = {
        path.relative_to(ROOT).as_posix()
        for path in (ROOT / "fairevals").rglob("*")
        if path.is_file() and path.suffix not in (".pyc", ".part") and not path.name.startswith(".")
    }
    assert {"fairevals/py.typed", "fairevals/data/sample.zip"} <= names
    # A file that appeared while this was built is another's.
    assert there - names == {name for name in there - names if not (ROOT / name).exists()}
    rest = {name for name in names if not name.startswith("fairevals/")}
    assert all(re.match(r"fairevals-[^/]+\.dist-info/", name) for name in rest)
    assert any(name.endswith("entry_points.txt") for name in rest)
    assert any("LICENSE" in name for name in rest)


def test_the_sdist_builds_the_same_wheel(built, tmp_path):
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    for name in ("README.md", "LICENSE", "CITATION.cff", "CONTRIBUTING.md", "fairevals/data/sample.zip"):
        assert (source / name).is_file(), name
    for name in ("tests", "experiments", "tools", "runs", "qrels"):
        assert (source / name).is_dir(), name
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path, cwd=source)
    (again,), (wheel,) = tmp_path.glob("*.whl"), built.glob("*.whl")
    with zipfile.ZipFile(again) as a, zipfile.ZipFile(wheel) as b:
        assert sorted(a.namelist()) == sorted(b.namelist())


@pytest.mark.slow
def test_demo_from_an_empty_folder(installed, tmp_path):
    where = run(
        sys.executable,
        "-c",
        "import fairevals; print(fairevals.__file__)",
        cwd=tmp_path,
        PYTHONPATH=str(installed),
    )
    assert where.stdout.startswith(str(installed))
    done = run(sys.executable, "-m", "fairevals", "demo", "-o", "X", cwd=tmp_path, PYTHONPATH=str(installed))
    assert "bm25" in done.stdout
    assert [path.name for path in tmp_path.iterdir()] == ["X"]
    assert "bm25" in (tmp_path / "X" / "index.html").read_text()
    assert (tmp_path / "X" / "scores.csv").read_text().startswith("run,topic,measure,value,se")


def test_the_program_and_its_version(installed, tmp_path):
    program = installed / "bin" / "fairevals"
    expected = f"fairevals {fairevals.__version__}\n"
    if program.exists():  # a folder given to pip gets scripts on most systems
        assert (
            run(sys.executable, program, "--version", cwd=tmp_path, PYTHONPATH=str(installed)).stdout
            == expected
        )
    done = run(sys.executable, "-m", "fairevals", "--version", cwd=tmp_path, PYTHONPATH=str(installed))
    assert done.stdout == expected


def test_help_loads_nothing_heavy():
    code = """
import sys
from fairevals.cli.main import main
main(["--help"])
assert not {"numpy", "pandas", "scipy"} & set(sys.modules), sorted(sys.modules)
"""
    assert "score" in run(sys.executable, "-c", code, cwd=ROOT).stdout


# doctor -----------------------------------------------------------------------------------------------------


def test_doctor(capsys, monkeypatch):
    monkeypatch.setenv("FAIREVALS_MAX_LINE", "12345")
    assert main(["doctor"]) == 0
    text = capsys.readouterr().out
    assert f"fairevals {fairevals.__version__}\nPython {sys.version.split()[0]}" in text
    assert re.search(r"numpy +\d", text) and re.search(r"pyarrow +[\d—]", text)
    assert re.search(r"FAIREVALS_MAX_LINE +12345 ", text)


def test_doctor_says_what_is_missing(capsys, monkeypatch):
    monkeypatch.setattr(
        doctor, "version_of", lambda name: None if name in ("scipy", "distributed") else "1.0"
    )
    assert main(["doctor"]) == 1
    out, err = capsys.readouterr()
    assert "scipy        MISSING (pip install scipy)" in out
    assert "(--dask) (pip install 'fairevals[dask]')" in out
    assert "missing: scipy" in err
    monkeypatch.setenv("FAIREVALS_MAX_LINE", "many")
    assert main(["doctor"]) == 2


def test_doctor_knows_all_dependencies():
    def names(lines):
        return {re.match(r"[\w.-]+", line)[0] for line in lines}

    assert set(doctor.NEEDED) == names(PROJECT["project"]["dependencies"])
    extras = PROJECT["project"]["optional-dependencies"]
    for package, (extra, _) in doctor.OPTIONAL.items():
        assert package in names(extras[extra])


# Completion -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh", "fish"])
def test_completion_knows_every_command_and_option(shell, capsys):
    pytest.importorskip("shtab")
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    for command in COMMANDS:
        assert command in script
        for action in make_parser(command)._actions:
            for name in action.option_strings:
                assert name.lstrip("-") in script
    checker = shutil.which(shell)
    if checker:
        subprocess.run([checker, "-n"], input=script, text=True, check=True, capture_output=True)


def test_completion_without_shtab_names_the_extra(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 2
    assert "pip install 'fairevals[completion]'" in capsys.readouterr().err


def complete(line, cwd, script):
    """What bash would offer for the last word of the line."""
    words = line.split(" ")
    ask = f"COMP_WORDS=({' '.join(map(repr, words))}); COMP_CWORD={len(words) - 1}; {FUNCTION} fairevals {words[-1]!r}"
    code = f"{script}\n{ask}\nprintf '%s\\n' \"${{COMPREPLY[@]}}\""
    done = subprocess.run(["bash", "-c", code], cwd=cwd, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


FUNCTION = "_shtab_fairevals"


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_completion_in_bash(tmp_path, capsys):
    pytest.importorskip("shtab")
    for name in ("a.run", "b.qrels"):
        (tmp_path / name).touch()
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert complete("fairevals ", tmp_path, script) >= set(COMMANDS)
    assert complete("fairevals sc", tmp_path, script) == {"score"}
    assert complete("fairevals score --po", tmp_path, script) == {"--policy"}
    assert complete("fairevals score --policy ", tmp_path, script) == {"ranking", "pl", "samples"}
    assert complete("fairevals score -m GF", tmp_path, script) == {"GF", "GFR"}
    assert complete("fairevals score --qrels b", tmp_path, script) == {"b.qrels"}
    assert complete("fairevals score --qrels b.qrels a", tmp_path, script) == {"a.run"}
