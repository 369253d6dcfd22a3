"""Files: whole or not at all, on the disk before they count, errors that name them, and nothing left in the way."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from shortlist.errors import ShortlistError
from shortlist.files import parse_json, read_tensors, remove_drafts, write_folder, write_tensors, written_whole

# a process whose files may grow to 64 kB and no further, as on a disk that is full
FULL_DISK = """
import resource, signal, sys
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
from shortlist.files import write_folder, written_whole
try:
    if sys.argv[1] == "folder":
        write_folder(sys.argv[2], {"small": b"1", "large": bytes(1 << 20)})
    else:
        with written_whole(sys.argv[2]) as file:
            file.write(bytes(1 << 20))
except OSError as error:
    print(error)
"""


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_a_full_disk_names_the_file_and_leaves_no_draft(kind: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", FULL_DISK, kind, str(tmp_path / "wanted")]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "cannot write: File too large" in told
    assert str(tmp_path / "wanted") in told
    assert ".tmp" not in told
    assert os.listdir(tmp_path) == []


def test_a_device_without_space_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(handle: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"cannot write: No space left on device: '.*wanted'") as caught:  # noqa: SIM117
        with written_whole(tmp_path / "wanted"):
            pass
    assert caught.value.errno == 28
    assert os.listdir(tmp_path) == []


def test_a_missing_permission_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path, *_: object) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr("builtins.open", refused)
    with pytest.raises(PermissionError, match=r"Permission denied: '.*/wanted'"), written_whole(tmp_path / "wanted"):
        pass


def test_an_error_about_another_file_stays_as_it_is(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"No such file or directory: '.*source'"):  # noqa: SIM117
        with written_whole(tmp_path / "wanted") as file:
            file.write((tmp_path / "source").read_bytes())


def test_a_file_is_on_the_disk_before_it_replaces_another_and_its_folder_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "wanted").write_text("old")
    seen = []

    def fsync(handle: int) -> None:
        seen.append((Path(os.readlink(f"/proc/self/fd/{handle}")).suffix, (tmp_path / "wanted").read_text()))

    monkeypatch.setattr(os, "fsync", fsync)
    with written_whole(tmp_path / "wanted") as file:
        file.write(b"new")
    assert seen == [(".tmp", "old"), ("", "new")]


def test_drafts_of_killed_processes_are_removed_whatever_they_are(tmp_path: Path) -> None:
    kill_while_drafting = (
        "import os, signal, sys\n"
        "from shortlist import files\n"
        "os.replace = os.rename = lambda *_: os.kill(os.getpid(), signal.SIGKILL)\n"
        "if sys.argv[1] == 'folder':\n"
        "    files.write_folder(sys.argv[2], {'figures/a': b'1', 'index': b'2'})\n"
        "else:\n"
        "    with files.written_whole(sys.argv[2]) as file:\n"
        "        file.write(b'1')\n"
    )
    (tmp_path / "inside").mkdir()
    for kind, name in (("file", "inside/one"), ("folder", "two")):
        subprocess.run([sys.executable, "-c", kill_while_drafting, kind, str(tmp_path / name)], check=False)
    (tmp_path / ".mine.tmp").write_text("not a draft of ours")
    assert len(list(tmp_path.rglob(".*.tmp"))) == 3
    remove_drafts(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == [".mine.tmp", "inside"]


def test_a_folder_appears_whole_and_other_files_stay(tmp_path: Path) -> None:
    write_folder(tmp_path / "report", {"figures/a.svg": b"1", "index.html": b"2"})
    (tmp_path / "report" / "mine").write_text("3")
    write_folder(tmp_path / "report", {"figures/b.svg": b"4", "index.html": b"5"})
    found = {str(file.relative_to(tmp_path)): file.read_text() for file in tmp_path.rglob("*") if file.is_file()}
    assert found == {
        "report/figures/a.svg": "1",
        "report/figures/b.svg": "4",
        "report/index.html": "5",
        "report/mine": "3",
    }
    with pytest.raises(ShortlistError, match="is a file: a folder is needed"):
        write_folder(tmp_path / "report" / "mine", {})


@pytest.mark.parametrize("text", ["[" * 100_000, "{", b"\xff", "9" * 10_000])
def test_json_that_cannot_be_read_is_a_message(text: str | bytes) -> None:
    with pytest.raises(ShortlistError, match="JSON"):
        parse_json(text)


# ---- tensors

TENSORS = {"weight": torch.randn(7, 5), "half": torch.randn(3).bfloat16(), "none": torch.zeros(0, 4)}


def test_tensors_come_back_with_their_metadata(tmp_path: Path) -> None:
    write_tensors(tmp_path / "file", TENSORS, {"about": "these"})
    found, metadata = read_tensors(tmp_path / "file")
    assert metadata == {"about": "these"}
    assert all(torch.equal(found[name], tensor) for name, tensor in TENSORS.items())


def test_what_a_flipped_byte_or_a_cut_changes_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_tensors(path, TENSORS, {"about": "these"})
    whole = path.read_bytes()
    name = whole.index(b"shortlist.sha256")
    for place in range(len(whole)):
        path.write_bytes(whole[:place])
        with pytest.raises(ShortlistError, match="damaged"):
            read_tensors(path)
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        if name <= place < name + len("shortlist.sha256"):  # a checksum of another name is none, and harms nobody
            assert all(torch.equal(read_tensors(path)[0][key], tensor) for key, tensor in TENSORS.items())
            continue
        with pytest.raises(ShortlistError, match="damaged"):
            read_tensors(path)


def test_a_file_without_a_checksum_is_read(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    save_file(TENSORS, tmp_path / "file")
    assert set(read_tensors(tmp_path / "file")[0]) == set(TENSORS)


@pytest.mark.parametrize("kind", ["file", "folder"])
def test_what_another_process_is_writing_now_is_not_removed(kind: str, tmp_path: Path) -> None:
    writes = (
        "import sys\n"
        "from shortlist.files import write_folder, written_whole\n"
        "def wait():\n"
        "    print('writing', flush=True)\n"
        "    sys.stdin.read()\n"
        "    return b'whole'\n"
        "class Slow(dict):\n"
        "    def items(self): yield 'page', wait()\n"
        "    def __iter__(self): return iter(['page'])\n"
        "if sys.argv[1] == 'folder':\n"
        "    write_folder(sys.argv[2], Slow())\n"
        "else:\n"
        "    with written_whole(sys.argv[2]) as file: file.write(wait())\n"
    )
    command = [sys.executable, "-c", writes, kind, str(tmp_path / "target")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        remove_drafts(tmp_path)
        process.communicate("")
    assert process.returncode == 0
    assert (tmp_path / "target" / "page" if kind == "folder" else tmp_path / "target").read_bytes() == b"whole"
