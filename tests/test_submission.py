"""Folders and zip archives of runs: scored as their files are, and refused if they mean harm."""

from __future__ import annotations

import io
import json
import stat
import struct
import zipfile
from zipfile import ZipFile, ZipInfo

import pytest

import fairevals as fe
from fairevals.cli.main import main
from fairevals.errors import InputError
from fairevals.io import archives
from fairevals.io.archives import files_in

QRELS = "q1 0 a 1\nq1 0 b 0\nq2 0 a 1\n"
RUNS = {
    "team/one.txt": "q1 Q0 a 1 2 one\nq1 Q0 b 2 1 one\nq2 Q0 a 1 1 one\n",
    "team/two.txt": "q1 Q0 b 1 2 two\nq1 Q0 a 2 1 two\nq2 Q0 a 1 1 two\n",
    "three.csv": "topic,doc,score\nq1,a,1\nq2,b,1\n",
}
NOISE = {
    "__MACOSX/team/._one.txt": "\0\5\26\7",
    ".DS_Store": "\0\0\0\1Bud1",
    "team/.hidden": "x",
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.qrels").write_text(QRELS)
    for name, text in {**RUNS, **NOISE}.items():
        path = tmp_path / "sub" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with ZipFile("sub.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("team/", "")
        for name, text in {**RUNS, **NOISE}.items():
            archive.writestr(name, text)
    return tmp_path


def test_folder_and_archive_are_their_files(folder, capsys):
    options = ["--qrels", "my.qrels", "-m", "RR", "--format", "csv", "-q"]
    assert main(["score", *options, "sub/team/one.txt", "sub/team/two.txt", "sub/three.csv"]) == 0
    expected = sorted(capsys.readouterr().out.splitlines())
    for given in ("sub", "sub.zip"):
        for more in ((), ("--jobs", "2")):
            assert main(["score", *options, given, *more]) == 0
            assert sorted(capsys.readouterr().out.splitlines()) == expected
        frame = fe.evaluate(given, "my.qrels", ["RR"]).pivot()
        assert frame.RR.to_dict() == {"one": 1.0, "three": 0.5, "two": 0.75}
    assert main(["score", *options, "sub.zip:team/one.txt"]) == 0
    assert capsys.readouterr().out.splitlines()[1] == "one,q1,RR,1.0,"


def test_every_command(folder, capsys):
    words = ["--qrels", "my.qrels", "sub.zip", "-m", "RR"]
    assert main(["compare", *words, "--baseline", "sub.zip:team/two.txt"]) == 0
    assert main(["report", *words, "--baseline", "one", "-o", "report"]) == 0
    files = json.loads((folder / "report" / "report.json").read_text())["files"]
    assert [file["name"] for file in files] == ["my.qrels", "one.txt", "two.txt", "three.csv"]
    assert files[1]["size"] == len(RUNS["team/one.txt"])
    capsys.readouterr()
    assert main(["pool", "sub.zip", "--depth", "1"]) == 0
    assert capsys.readouterr().out == "q1 a 2\nq1 b 1\nq2 a 2\nq2 b 1\n"
    assert main(["exposure", "--qrels", "my.qrels", "sub.zip"]) == 1
    assert "sub.zip: an archive of 3 files; expected one run" in capsys.readouterr().err
    assert main(["score", *words, "-o", "sub.zip"]) == 2
    assert "sub.zip is read by this command" in capsys.readouterr().err


def test_validate_names_the_file_and_the_line(folder, capsys):
    with ZipFile("sub.zip", "a") as archive:
        archive.writestr("team/bad.txt", "q1 Q0 a 1 2 bad\nq1 Q0 b\nq2 Q0 a 1 1 bad\n")
        inner = io.BytesIO()
        with ZipFile(inner, "w") as nested:
            nested.writestr("x.run", RUNS["team/one.txt"])
        archive.writestr("nested.zip", inner.getvalue())
    assert main(["validate", "--qrels", "my.qrels", "sub.zip", "--format", "csv"]) == 1
    out, err = capsys.readouterr()
    assert "sub.zip:team/bad.txt,2,error,columns,3 columns: 'q1 Q0 b'" in out
    assert "sub.zip:nested.zip,,error,format,this is a zip archive,a TREC run" in out
    assert out.count("\n") == 3
    assert "5 files: 3 fine, 2 with errors" in err
    assert main(["score", "--qrels", "my.qrels", "sub.zip"]) == 1
    assert "sub.zip:" in capsys.readouterr().err


def test_the_runs_table_names_files_of_archives(folder, capsys):
    (folder / "runs.csv").write_text(
        "file,name,status\nsub.zip:team/one.txt,First,baseline\nthree.csv,Third,\n"
    )
    (folder / "task.toml").write_text('qrels = "my.qrels"\nruns = "runs.csv"\nmeasures = ["RR"]\n')
    result = fe.evaluate("sub.zip", task="task.toml")
    assert result.runs == ("First", "two", "Third")
    assert result.scores.statuses == ("baseline", "official", "official")
    assert fe.evaluate("sub/team/one.txt", task="task.toml").runs == ("one",)  # another file of that name


def entry(name, **changes):
    info = ZipInfo(name)
    for key, value in changes.items():
        setattr(info, key, value)
    return info


def test_compressed_runs_in_an_archive(folder):
    import gzip

    with ZipFile("packed.zip", "w") as archive:
        archive.writestr("one.txt.gz", gzip.compress(RUNS["team/one.txt"].encode()))
    assert fe.read_run("packed.zip").to_frame().equals(fe.read_run("sub/team/one.txt").to_frame())


LINK = (stat.S_IFLNK | 0o777) << 16


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ([entry("../x.run")], r"bad.zip: the entry '../x.run' leads out of the archive's folder"),
        ([entry("a/../../x.run")], "leads out"),
        ([entry("/etc/x.run")], "leads out"),
        ([entry("..\\x.run")], "leads out"),
        ([entry("C:x.run")], "leads out"),
        ([entry("__MACOSX/../../x")], "leads out"),
        ([entry("link", external_attr=LINK)], "is a link or a device"),
        ([entry("pipe", external_attr=stat.S_IFIFO << 16)], "is a link or a device"),
        ([entry("x.run"), entry("x.run")], "'x.run' is there twice; expected every name once"),
        ([entry("x.run", compress_type=zipfile.ZIP_LZMA)], "method other than deflate"),
        ([], "bad.zip: no file; expected a folder or a zip archive of run files"),
        ([entry(".hidden")], "bad.zip: no file"),
        ([entry("\x1b[31m../..")], r"the entry '\\x1b\[31m../..' leads out"),
    ],
)
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_harmful_archives(folder, capsys, entries, message):
    with ZipFile("bad.zip", "w") as archive:
        for info in entries:
            archive.writestr(info, RUNS["team/one.txt"])
    with pytest.raises(InputError, match=message):
        files_in("bad.zip")
    assert main(["score", "--qrels", "my.qrels", "bad.zip"]) == 1
    assert "bad.zip" in capsys.readouterr().err
    assert main(["validate", "--qrels", "my.qrels", "bad.zip", "sub/team/one.txt", "--format", "csv"]) == 1
    out, err = capsys.readouterr()
    assert out.count("\n") == 2 and "bad.zip,,error,unreadable," in out
    assert "2 files: 1 fine" in err
    if entries and ".." in entries[0].filename:
        assert main(["score", "--qrels", "my.qrels", f"bad.zip:{entries[0].filename}"]) == 1


def test_encrypted_and_broken_archives(folder):
    data = bytearray((folder / "sub.zip").read_bytes())
    at = data.index(b"PK\x01\x02")
    data[at + 8] |= 1
    (folder / "bad.zip").write_bytes(data)
    with pytest.raises(InputError, match="is encrypted"):
        files_in("bad.zip")
    (folder / "bad.zip").write_bytes((folder / "sub.zip").read_bytes()[:-30])
    with pytest.raises(InputError, match=r"bad.zip: not a readable zip archive \(File is not a zip file\)"):
        files_in("bad.zip")
    data = bytearray((folder / "sub.zip").read_bytes())
    data[data.index(b"team/one.txt") + 20] ^= 0xFF  # in its compressed bytes
    (folder / "bad.zip").write_bytes(data)
    with pytest.raises(InputError, match=r"bad.zip:team/one.txt: "):
        fe.evaluate("bad.zip", "my.qrels", ["RR"])


def test_limits(folder, monkeypatch):
    with ZipFile("bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.run", b"\n" * (3 << 20))
    with pytest.raises(
        InputError, match=r"3145728 bytes in an archive of .*; expected at most 200 times as many"
    ):
        files_in("bomb.zip")
    monkeypatch.setattr(archives, "MAX_FILES", 2)
    for given in ("sub", "sub.zip"):
        with pytest.raises(InputError, match=f"{given}: 3 files; expected at most 2"):
            files_in(given)
    monkeypatch.setenv("FAIREVALS_MAX_BYTES", "100")
    with pytest.raises(InputError, match=r"sub\.zip: more than 100 bytes; raise FAIREVALS_MAX_BYTES"):
        files_in("sub.zip")


def test_a_large_table_of_contents_is_not_read(folder, monkeypatch):
    """Python reads it as a whole, and an archive of a megabyte can have a table with millions of entries."""
    data = bytearray((folder / "sub.zip").read_bytes())
    at = data.rindex(b"PK\x05\x06")
    struct.pack_into("<I", data, at + 12, 2 << 20)
    (folder / "large.zip").write_bytes(data)
    (folder / "large64.zip").write_bytes(data[:at] + b"PK\x06\x07" + bytes(16) + data[at:])
    monkeypatch.setattr(archives, "ZipFile", None)
    for name in ("large.zip", "large64.zip"):
        with pytest.raises(InputError, match=f"{name}: an archive of very many or very large files"):
            files_in(name)


def test_links_in_folders(folder):
    (folder / "secret").write_text("q1 Q0 a 1 1 secret\n")
    (folder / "sub" / "team" / "link").symlink_to(folder / "secret")
    with pytest.raises(InputError, match=r"link: a link that leads out of the folder"):
        files_in("sub")
    (folder / "sub" / "team" / "link").unlink()
    (folder / "sub" / "inside").symlink_to("team/one.txt")
    assert files_in("sub") == ["sub/inside", "sub/team/one.txt", "sub/team/two.txt", "sub/three.csv"]
    (folder / "sub" / "team" / "one.txt").unlink()
    with pytest.raises(InputError, match=r"sub/inside: a link that leads nowhere"):
        files_in("sub")


def test_archives_in_a_folder(folder):
    """An organiser has one archive per team."""
    (folder / "all").mkdir()
    (folder / "sub.zip").rename(folder / "all" / "sub.zip")
    assert files_in("all") == [
        f"all/sub.zip:{name}" for name in ("team/one.txt", "team/two.txt", "three.csv")
    ]


def test_a_harmful_archive_does_not_hide_the_other_submissions(folder, capsys):
    with ZipFile("sub/bad.zip", "w") as archive:
        archive.writestr("../x.run", RUNS["team/one.txt"])
    (folder / "sub/team/two.txt").write_text("q1 Q0 a 1\n")
    assert main(["validate", "--qrels", "my.qrels", "sub", "--format", "csv"]) == 1
    out, err = capsys.readouterr()
    assert "sub/bad.zip,,error,unreadable,the entry '../x.run' leads out" in out
    assert "sub/team/two.txt,1,error,columns" in out and "4 files: 2 fine, 2 with errors" in err
    (folder / "sub/team/two.txt").unlink()
    assert main(["score", "--qrels", "my.qrels", "sub", "-m", "RR"]) == 1
    assert "sub/bad.zip: the entry '../x.run' leads out" in capsys.readouterr().err


def test_a_folder_of_runs_may_have_parquet_files(folder):
    """Only a folder without other files is one run of parquet files: no run is skipped."""
    pytest.importorskip("pyarrow")
    import pandas as pd

    table = pd.DataFrame({"topic": ["q1", "q2"], "doc": ["b", "a"], "score": [1.0, 1.0]})
    table.to_parquet("sub/four.parquet")
    scores = fe.evaluate("sub", "my.qrels", ["RR"]).pivot().RR.to_dict()
    assert scores == {"four": 0.5, "one": 1.0, "three": 0.5, "two": 0.75}
    (folder / "one run").mkdir()
    table.to_parquet("one run/part-0.parquet")
    (folder / "one run/_SUCCESS").write_text("")
    assert fe.evaluate("one run", "my.qrels", ["RR"]).runs == ("one run",)


def test_the_place_of_a_problem_is_named_once(folder, capsys):
    assert main(["validate", "--qrels", "my.qrels", "nowhere.run", "--format", "csv"]) == 1
    assert "nowhere.run,,error,unreadable,cannot be read (No such file" in capsys.readouterr().out
