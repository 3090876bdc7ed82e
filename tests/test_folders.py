"""Output folders: replaced as a whole or left as they were, whatever happens, with nothing of anybody else touched."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fairevals.cli.main import main
from fairevals.io import folders
from fairevals.io.folders import Marked, replacing
from fairevals.io.parts import locked, part_of
from fairevals.io.streams import written_bytes

KIND = Marked("report", "report.json", "test 1")


def version(name: str) -> dict[str, bytes]:
    """The files of a report: one figure that every version has, and one of its own."""
    figures = ["figures/a.svg", f"figures/{name}.svg"]
    marker = json.dumps({"format": KIND.format, "figures": figures}).encode()
    return {"index.html": name.encode(), "scores.csv": name.encode(), "report.json": marker} | dict.fromkeys(
        figures, name.encode()
    )


MINE = {"README": b"mine", "figures/mine.png": b"mine", "notes/deep/b.txt": b"mine"}
OLD, NEW = version("old"), version("new")


def write(folder: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def content(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.fixture
def out(tmp_path):
    """A report with files of its owner, in an otherwise empty folder."""
    folder = tmp_path / "above" / "out"
    write(folder, OLD | MINE)
    return folder


def no_exchange(*_: object) -> None:
    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


@pytest.fixture(params=["exchanged", "one by one"])
def way(request, monkeypatch):
    """Both ways to replace a folder."""
    if request.param == "one by one":
        monkeypatch.setattr(folders, "exchange", no_exchange)
    return request.param


def test_a_new_version_replaces_an_earlier_one_and_nothing_else(out, way):
    out.chmod(0o750)
    inode = out.stat().st_ino
    (out / "link").symlink_to("/nowhere")
    paths = KIND.write(out, NEW)
    assert paths == [out / name for name in sorted(NEW, key=lambda name: (name != "index.html", name))]
    assert content(out) == NEW | MINE
    assert (out / "link").readlink() == Path("/nowhere")
    assert [path.name for path in out.parent.iterdir()] == ["out"]
    assert out.stat().st_mode & 0o777 == 0o750
    assert (out.stat().st_ino == inode) == (way == "one by one")


def test_an_empty_folder_and_none_at_all(tmp_path):
    KIND.write(tmp_path / "a" / "b", NEW)
    assert content(tmp_path) == {f"a/b/{name}": data for name, data in NEW.items()}
    (tmp_path / "empty").mkdir(mode=0o700)
    KIND.write(tmp_path / "empty", NEW)
    assert content(tmp_path / "empty") == NEW
    assert (tmp_path / "empty").stat().st_mode & 0o777 == 0o700
    with pytest.raises(ZeroDivisionError), replacing(tmp_path / "c" / "d") as part:
        write(part, {"half": b""})
        raise ZeroDivisionError
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "empty"]


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("name", ["figures", "index.html", "scores.csv", "report.json", "figures/a.svg"])
def test_a_link_in_the_folder_is_replaced_and_not_followed(tmp_path, name):
    """Else a page that is written for a web server could overwrite any file that the link names."""
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    write(out, {"figures/old.svg": b"", "report.json": OLD["report.json"]})
    kept = (
        {"a.svg": b"kept", "new.svg": b"kept", "old.svg": b"kept"}
        if name == "figures"
        else {"it": OLD["report.json"]}
    )
    write(elsewhere, kept)
    if name == "figures":
        (out / "figures" / "old.svg").unlink()
        (out / "figures").rmdir()
    (out / name).unlink(missing_ok=True)
    (out / name).symlink_to(elsewhere if name == "figures" else elsewhere / "it")
    KIND.write(out, NEW)
    assert content(elsewhere) == kept
    assert content(out) == NEW and not any(path.is_symlink() for path in out.rglob("*"))


def test_stale_figures_behind_a_link_are_not_deleted(tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "exchange", no_exchange)
    write(tmp_path / "out", {"report.json": OLD["report.json"]})
    write(tmp_path / "elsewhere", {"old.svg": b"kept"})
    (tmp_path / "out" / "figures").symlink_to(tmp_path / "elsewhere")
    KIND.write(tmp_path / "out", {"index.html": b"", "report.json": b"{}"})
    assert content(tmp_path / "elsewhere") == {"old.svg": b"kept"}


@pytest.mark.usefixtures("way")
def test_a_link_to_the_folder_stays(out):
    link = out.parent / "public"
    link.symlink_to("out")
    KIND.write(link, NEW)
    assert link.readlink() == Path("out") and content(out) == NEW | MINE
    assert sorted(path.name for path in out.parent.iterdir()) == ["out", "public"]


def test_the_current_folder_stays_the_same(out, monkeypatch):
    """A shell would otherwise stand in a folder that has been removed."""
    monkeypatch.chdir(out / "notes")
    for folder in ("..", str(out)):
        inode = out.stat().st_ino
        KIND.write(Path(folder), NEW)
        assert content(out) == NEW | MINE
        assert out.stat().st_ino == inode and Path.cwd() == out / "notes"


def test_the_folder_above_cannot_be_written(out, monkeypatch):
    real = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != out.parent and real(path, mode))
    inode = out.stat().st_ino
    KIND.write(out, NEW)
    assert content(out) == NEW | MINE and out.stat().st_ino == inode
    assert not list(out.rglob("*.part"))


MOUNTED = """
import sys
from pathlib import Path
sys.path.insert(0, "tests")
from test_folders import KIND, MINE, NEW, OLD, content, write
out = Path(sys.argv[1])
write(out, OLD | MINE)
KIND.write(out, NEW)
assert content(out) == NEW | MINE
assert out.is_mount() == (sys.argv[2] == "tmpfs")
"""


@pytest.mark.parametrize("kind", ["tmpfs", "bind"])
def test_a_mount_point(tmp_path, kind):
    out = tmp_path / "out"
    out.mkdir()
    mount = f"mount -t tmpfs none {out}" if kind == "tmpfs" else f"mount --bind {out} {out}"
    top = Path(__file__).parent.parent
    words = ["unshare", "--mount", "--map-root-user", "sh", "-c", f'{mount} || exit 99; exec "$@"', "sh"]
    try:
        done = subprocess.run(
            [*words, sys.executable, "-c", MOUNTED, str(out), kind], cwd=top, capture_output=True, text=True
        )
    except FileNotFoundError:
        pytest.skip("needs unshare")
    if done.returncode == 99 or "unshare" in done.stderr:
        pytest.skip("mounting is not allowed here")
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.usefixtures("way")
def test_a_folder_in_the_place_of_a_file_is_an_error(out):
    (out / "scores.csv").unlink()
    write(out, {"scores.csv/mine": b"mine"})
    before = content(out)
    with pytest.raises(IsADirectoryError) as raised:
        KIND.write(out, NEW)
    assert raised.value.filename == str(out / "scores.csv")
    assert content(out)["scores.csv/mine"] == b"mine" and content(out)["index.html"] == before["index.html"]
    assert [path.name for path in out.parent.iterdir()] == ["out"]


# At every step -----------------------------------------------------------------------------------------------

AT_EVERY_STEP = """
import errno, os, signal, sys
from pathlib import Path
sys.path.insert(0, "tests")
from test_folders import KIND, MINE, NEW, OLD, content, no_exchange, write
from fairevals.io import folders

os.fsync = lambda _: sys.audit("os.fsync")  # a step like any other, without waiting for the disk
what, way, top = sys.argv[1], sys.argv[2], Path(sys.argv[3])
if way == "one by one":
    folders.exchange = no_exchange
KIND.write(top / "warm" / "up", NEW)  # so that nothing is imported later
KIND.write(top / "warm" / "up", OLD)

def at(step):
    count, reached = 0, []
    def hook(event, arguments):
        nonlocal count
        if event.startswith(("open", "os.", "shutil.", "fcntl.", "ctypes.")):
            count += 1
            reached.extend([step] * (count == step))
            if count == step and what == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            elif count == step and not event.startswith("ctypes."):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    return hook, reached

steps, ends = 0, set()
while True:
    steps += 1
    above = top / str(steps)
    out = above / "out"
    write(out, OLD | MINE)
    child = os.fork()
    if child == 0:
        hook, reached = at(steps)
        sys.addaudithook(hook)
        try:
            KIND.write(out, NEW)
        except OSError as error:
            os._exit(1 if error.errno == errno.ENOSPC else 2)
        os._exit(0 if reached else 3)
    status = os.waitpid(child, 0)[1]
    assert status in (0, 256, 3 * 256, signal.SIGKILL), status
    found = content(out)
    parts = [path for path in above.rglob("*") if path.name.endswith(".part")]
    found = {name: data for name, data in found.items() if ".part" not in name}
    ends.add(found["index.html"])
    if what == "fail" and found["index.html"] == b"new":
        found.pop("figures/old.svg", None)  # the earlier marker could not be read
    if way == "exchanged":
        assert found in (OLD | MINE, NEW | MINE), (steps, found)
    else:  # the page is last, and whole in itself
        assert found["index.html"] == b"old" or found | NEW | MINE == found, (steps, found)
    assert {name: found[name] for name in MINE} == MINE
    if what == "fail" and found["index.html"] == b"old":
        assert status == 256 and not parts, (steps, parts)
    KIND.write(out, NEW)  # removes what is left
    assert not [path for path in above.rglob("*") if path.name.endswith(".part")], steps
    assert {name: data for name, data in content(out).items() if name != "figures/old.svg"} == NEW | MINE
    if status == 3 * 256:
        break
assert ends == {b"old", b"new"} and steps > 50, (ends, steps)
"""


@pytest.mark.parametrize("way", ["exchanged", "one by one"])
@pytest.mark.parametrize("what", ["kill", pytest.param("fail", marks=pytest.mark.thorough)])
def test_killed_or_failing_at_every_step(tmp_path, what, way):
    done = subprocess.run(
        [sys.executable, "-c", AT_EVERY_STEP, what, way, str(tmp_path)],
        cwd=Path(__file__).parent.parent,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr


# Parts -------------------------------------------------------------------------------------------------------

DEAD = ".out.0123456789abcdef.part"


@pytest.mark.usefixtures("way")
def test_what_a_killed_process_left_is_removed_and_nothing_else(out):
    write(out, {".index.html.0123456789abcdef.part": b"", "figures/.a.svg.0123456789abcdef.part": b""})
    write(out.parent, {f"{DEAD}/figures/x.svg": b""})
    others = {".out.part": b"", ".out.0123.part": b"", ".other.0123456789abcdef.part": b"", "out.part/x": b""}
    write(out.parent, others)
    write(out, {"film.part": b"mine"})
    KIND.write(out, NEW)
    assert content(out) == NEW | MINE | {"film.part": b"mine"}
    assert {name for name in content(out.parent) if not name.startswith("out/")} == set(others)


def test_what_another_process_writes_stays(out):
    write(out, {".scores.csv.0123456789abcdef.part": b"half"})
    (out.parent / DEAD).mkdir()
    with locked(out.parent / DEAD), locked(out / ".scores.csv.0123456789abcdef.part"):
        KIND.write(out, NEW)
        assert (out.parent / DEAD).is_dir()
        assert content(out) == NEW | MINE | {".scores.csv.0123456789abcdef.part": b"half"}
    KIND.write(out, NEW)
    assert content(out) == NEW | MINE and not (out.parent / DEAD).exists()


def test_a_part_of_a_file_that_a_killed_process_left(tmp_path):
    write(tmp_path, {".a.csv.0123456789abcdef.part": b"half", ".b.csv.0123456789abcdef.part": b"other"})
    with written_bytes(tmp_path / "a.csv") as file:
        file.write(b"whole")
    assert content(tmp_path) == {"a.csv": b"whole", ".b.csv.0123456789abcdef.part": b"other"}


def test_a_part_that_another_process_removes_before_it_is_locked_is_made_again(tmp_path):
    made = []

    def make(part):
        made.append(part)
        if len(made) > 1:
            part.mkdir()

    with part_of(tmp_path / "out", make) as part:
        assert part.is_dir() and len(made) == 2


MANY = """
import sys
from pathlib import Path
sys.path.insert(0, "tests")
from test_folders import KIND, version
for n in range(40):
    KIND.write(Path(sys.argv[1]), version(sys.argv[2]))
"""


def test_of_several_writers_the_last_one_wins_whole(out):
    top = Path(__file__).parent.parent
    writers = [
        subprocess.Popen([sys.executable, "-c", MANY, str(out), name], cwd=top, stderr=subprocess.PIPE)
        for name in ("x", "y", "z")
    ]
    errors = [writer.communicate(timeout=120)[1] for writer in writers]
    assert errors == [b""] * 3
    found = content(out)
    assert found == version(found["index.html"].decode()) | MINE
    assert [path.name for path in out.parent.iterdir()] == ["out"]


# Messages ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EDQUOT, errno.EIO, errno.EROFS, errno.EACCES])
def test_an_error_names_the_file_and_not_its_part(out, monkeypatch, code):
    real = os.fsync
    calls = iter(range(100))

    def failing(opened: int) -> None:
        if next(calls) == 1:
            raise OSError(code, os.strerror(code))
        real(opened)

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OSError, match="cannot be written") as raised:
        KIND.write(out, NEW)
    assert raised.value.filename == str(out / "scores.csv")
    assert raised.value.strerror == f"cannot be written ({os.strerror(code)})"
    assert content(out) == OLD | MINE and [path.name for path in out.parent.iterdir()] == ["out"]


def test_an_error_about_another_file_stays(tmp_path):
    with pytest.raises(FileNotFoundError) as raised, replacing(tmp_path / "out"):
        (tmp_path / "missing").open()
    assert raised.value.filename == str(tmp_path / "missing")
    with pytest.raises(FileNotFoundError) as raised, written_bytes(tmp_path / "x"):
        (tmp_path / "missing").open()
    assert raised.value.filename == str(tmp_path / "missing")


def test_a_name_below_a_file_cannot_be_written(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, {"file": b"", "my.qrels": b"q 0 a 1\n", "my.run": b"q Q0 a 1 1 t\n"})
    score = ["score", "--qrels", "my.qrels", "my.run", "-m", "P@1", "-o"]
    for name, reason in (("file/out.csv", "File exists"), ("/", "Device or resource busy")):
        assert main([*score, name]) == 1
        assert f"fairevals: error: {name}: cannot be written ({reason})" in capsys.readouterr().err
    report = ["report", "--qrels", "my.qrels", "my.run", "-m", "P@1", "-o", "file/out"]
    assert main(report) == 1
    assert "fairevals: error: file/out: cannot be written (File exists)" in capsys.readouterr().err


# Several files that belong together --------------------------------------------------------------------------


def test_derived_files_are_all_written_before_the_first_is_renamed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    task = "".join(f'[attributes.{name}]\ngroups = ["x", "y"]\n' for name in ("A", "B"))
    write(
        tmp_path,
        {"t.toml": task.encode(), "a.tsv": b"topic\tdoc\tentity\tannotator\tA\tB\nq\ta\te\tz\tx\ty\n"},
    )
    derive = ["derive", "--task", "t.toml", "--annotations", "a.tsv", "--out", "out", "--force"]
    assert main(derive) == 0
    names = ["derived.A.gmemb", "derived.B.gmemb", "derived.qrels"]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == names
    write(tmp_path / "out", dict.fromkeys([*names, "mine"], b"before"))
    before, real, count = content(tmp_path), Path.replace, 0

    def failing(self: Path, target: Path) -> Path:
        nonlocal count
        count += target.name in names
        if count == 3:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self))
        return real(self, target)

    monkeypatch.setattr(Path, "replace", failing)
    assert main(derive) == 1
    assert "out/derived.B.gmemb: cannot be written (No space left on device)" in capsys.readouterr().err
    assert content(tmp_path) == before
    assert not list(tmp_path.rglob(".*"))


def test_trained_policies_appear_together(tmp_path, monkeypatch, capsys):
    lines = [f"{n % 2} qid:{n // 4} 1:{n % 3} 2:{n % 5}\n" for n in range(16)]
    write(tmp_path, {"train.txt": "".join(lines).encode(), "out/mine": b"mine"})
    train = [
        "train",
        "ridge",
        "--train",
        str(tmp_path / "train.txt"),
        "-o",
        str(tmp_path / "out"),
    ]
    with monkeypatch.context() as patched:
        patched.setattr("fairevals.training.outputs._write_table", no_exchange)
        assert main([*train, "--force"]) == 1
    assert content(tmp_path / "out") == {"mine": b"mine"}
    assert main([*train, "--force"]) == 0, capsys.readouterr().err
    assert {"mine", "summary.csv", "train.qrels"} < set(content(tmp_path / "out"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "train.txt"]
