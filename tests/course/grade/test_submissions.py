"""Who has handed in what: the names of people and platforms, archives, and what is not taken."""

from __future__ import annotations

import io
import os
import stat
import time
import zipfile

import pytest

from bert_course.grade import submissions
from bert_course.grade.submissions import NOTHING, Other, Refused, Submission, find

pytestmark = pytest.mark.no_arrays


def put(path, content=b"{}"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def zipped(**members):
    """A zip file's bytes; names as keyword arguments, with `__` for a slash and `_dot_` for a dot."""
    return archive({name.replace("__", "/").replace("_dot_", "."): text for name, text in members.items()})


def archive(members):
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in members.items():
            file.writestr(name, content)
    return memory.getvalue()


def students(folder):
    return {one.name: one.student for one in find(folder) if isinstance(one, Submission)}


def reasons(folder):
    return {one.name: one.reason for one in find(folder) if isinstance(one, Refused)}


@pytest.mark.parametrize(
    ("path", "student"),
    [
        ("anna/x.ipynb", "anna"),
        ("anna/week 1/x.ipynb", "anna"),
        ("anna.ipynb", "anna"),
        ("Anna Lee_12345_assignsubmission_file_/x.ipynb", "Anna Lee (12345)"),
        ("Anna_Lee_12345_assignsubmission_file_/deep/x.ipynb", "Anna_Lee (12345)"),
        ("class/Anna Lee_12345_assignsubmission_file/x.ipynb", "Anna Lee (12345)"),
        ("Anna Lee_12345_assignsubmission_file_07_one_head.ipynb", "Anna Lee (12345)"),
        ("leeanna_12345_67890_07_one_head.ipynb", "leeanna (12345)"),
        ("leeanna_LATE_12345_67890_07_one_head-1.ipynb", "leeanna (12345)"),
        ("Week 3_leeanna_attempt_2026-11-27-10-30-00_07.ipynb", "leeanna"),
        ("Blatt_3_lee.anna@uni.de_Versuch_2026-11-27-10-30-00_a_b.ipynb", "lee.anna@uni.de"),
        ("gradebook/Week 3_leeanna_attempt_2026-11-27-10-30-00_07.ipynb", "leeanna"),
        ("W_one_attempt_2026-11-27-10-30-00_W_two_attempt_2026-11-27-10-30-00_x.ipynb", "one"),
        ("123456-789012 - Anna Lee - Nov 27, 2026 1030 AM - 07 - mine.ipynb", "Anna Lee"),
        ("123456-789012 - Anna Lee - Nov 27, 2026 1030 AM/07.ipynb", "Anna Lee"),
        ("Week 3/123456-789012 - Anna Lee-Roy - 27 novembre 2026 1030/deep/07.ipynb", "Anna Lee-Roy"),
        ("1-2 - One - Nov 27, 2026 1030 AM - 3-4 - Two - Nov 27, 2026 1030 AM - x.ipynb", "One"),
        ("Lee_Anna_leeanna_12345/07.ipynb", "Anna Lee (leeanna)"),
        ("Week 3/Submissions/Lee_Anna_lee_anna_12345/07.ipynb", "Anna Lee (lee_anna)"),
        ("Blatt 3/Abgaben/von Berg_Anna Maria_lee.anna_12345/07.ipynb", "Anna Maria von Berg (lee.anna)"),
        ("Week 3/Abgaben/Team 12/Lee_Anna_leeanna_12345/07.ipynb", "Anna Lee (leeanna)"),
        ("anna/my_great_homework_12/07.ipynb", "anna"),
        ("anna/07 - second try - Nov 27.ipynb", "anna"),
        ("anna/07_1_2_x.ipynb", "anna"),
        ("lee_1_2_x/y.ipynb", "lee_1_2_x"),
    ],
)
def test_whose_a_notebook_is(tmp_path, path, student):
    put(tmp_path / path)
    assert students(tmp_path) == {path: student}


@pytest.mark.parametrize(
    ("path", "time"),
    [
        ("Week 3_leeanna_attempt_2026-11-27-10-30-00_07.ipynb", 1795775400.0),
        ("1-2 - Anna Lee - Nov 27, 2026 1030 AM - 07.ipynb", 1795775400.0),
        ("1-2 - Anna Lee - November 27, 2026 10:30 PM/07.ipynb", 1795818600.0),
        ("1-2 - Anna Lee - 27 novembre 2026 1030 - 07.ipynb", 2000.0),
    ],
)
def test_a_platform_may_say_when(tmp_path, path, time):
    put(tmp_path / path)
    os.utime(tmp_path / path, (1000, 2000))
    (found,) = find(tmp_path)
    assert found.time == time


def test_a_hostile_name_in_an_archive_takes_no_time(tmp_path):
    names = ["1-1 - " + " 2026 -" * 9000, "a_" * 30000, "1-1" + " - 1" * 15000]
    put(tmp_path / "class.zip", archive({f"{name}.ipynb": "{}" for name in names}))
    assert len(students(tmp_path / "class.zip")) == 3


def test_a_notebook_has_its_content_and_time(tmp_path):
    put(tmp_path / "anna.ipynb", b"text")
    os.utime(tmp_path / "anna.ipynb", (1000, 2000))
    assert list(find(tmp_path)) == [Submission("anna", "anna.ipynb", b"text", 2000.0)]


def test_what_is_hidden_is_not_read(tmp_path):
    for name in ("anna/.ipynb_checkpoints/x.ipynb", ".hidden/x.ipynb", "anna/._x.ipynb", ".x.ipynb"):
        put(tmp_path / name)
    put(tmp_path / "ben.zip", archive({".ipynb_checkpoints/x.ipynb": "{}", "__MACOSX/a/x.ipynb": ""}))
    put(tmp_path / "cy.zip", archive({}))
    (tmp_path / "Lee_Dan_dl_77").mkdir()
    assert list(find(tmp_path)) == [
        Other("Dan Lee (dl)", "Lee_Dan_dl_77", NOTHING),
        Other("anna", "anna", NOTHING),
        Other("ben", "ben.zip", NOTHING),
        Other("cy", "cy.zip", NOTHING),
    ]


def test_what_is_hidden_in_the_archive_of_a_class_is_not_read(tmp_path):
    names = [
        "anna/.ipynb_checkpoints/x.ipynb",
        "ben/",
        ".ipynb_checkpoints/x.ipynb",
        "__MACOSX/anna/._x.ipynb",
    ]
    put(tmp_path / "class.zip", archive(dict.fromkeys(names, "")))
    assert list(find(tmp_path / "class.zip")) == [
        Other("anna", "class.zip: anna", NOTHING),
        Other("ben", "class.zip: ben", NOTHING),
    ]


def test_the_list_that_brightspace_makes_is_of_nobody(tmp_path):
    put(tmp_path / "in" / "index.html")
    put(tmp_path / "in" / "anna" / "index.html")
    put(tmp_path / "class.zip", archive({"index.html": "", "anna/index.html": ""}))
    assert list(find(tmp_path / "in")) == [Other("anna", "anna/index.html")]
    assert list(find(tmp_path / "class.zip")) == [Other("anna", "class.zip: anna/index.html")]


def test_another_file_is_told(tmp_path):
    put(tmp_path / "anna" / "x.py")
    put(tmp_path / "ben.zip", archive({"y.pdf": ""}))
    put(tmp_path / "Cy_1_assignsubmission_onlinetext_" / "onlinetext.html")
    assert list(find(tmp_path)) == [
        Other("Cy (1)", "Cy_1_assignsubmission_onlinetext_/onlinetext.html"),
        Other("anna", "anna/x.py"),
        Other("ben", "ben.zip: y.pdf"),
    ]


@pytest.mark.parametrize("name", ["x.ipynb.txt", "x.IPYNB.json", "x.ipynb (1)"])
def test_a_notebook_of_another_ending_is_refused(tmp_path, name):
    put(tmp_path / "anna" / name)
    put(tmp_path / "ben.zip", archive({name: "{}"}))
    why = "its name does not end in .ipynb: rename it"
    assert reasons(tmp_path) == {f"anna/{name}": why, f"ben.zip: {name}": why}


def test_endings_may_be_capitals(tmp_path):
    put(tmp_path / "anna" / "X.IPYNB")
    put(tmp_path / "Ben.ZIP", archive({"Y.Ipynb": "{}"}))
    assert students(tmp_path) == {"anna/X.IPYNB": "anna", "Ben.ZIP: Y.Ipynb": "Ben"}


def test_a_notebook_instead_of_a_folder(tmp_path):
    put(tmp_path / "anna.ipynb", b"text")
    (found,) = find(tmp_path / "anna.ipynb")
    assert (found.student, found.name, found.content) == ("anna", "anna.ipynb", b"text")


def test_what_is_passed_by_is_not_found(tmp_path):
    for name in ("anna/x.ipynb", "grades.csv", "grades-pages/students/anna.html"):
        put(tmp_path / name)
    found = list(find(tmp_path, [tmp_path / "grades.csv", tmp_path / "grades-pages"]))
    assert [one.name for one in found] == ["anna/x.ipynb"]


def test_an_archive_of_one_student(tmp_path):
    put(tmp_path / "anna.zip", zipped(homework__x_dot_ipynb="{}", notes_dot_txt=""))
    put(tmp_path / "ben" / "all.zip", zipped(y_dot_ipynb="{}"))
    assert students(tmp_path) == {"anna.zip: homework/x.ipynb": "anna", "ben/all.zip: y.ipynb": "ben"}


def test_an_archive_of_a_class(tmp_path):
    names = ("Anna_1_assignsubmission_file_/x.ipynb", "Ben_2_assignsubmission_file_/y.ipynb")
    put(tmp_path / "moodle.zip", archive(dict.fromkeys(names, "{}")))
    put(tmp_path / "canvas.zip", archive({"leeanna_12_34_x.ipynb": "{}"}))
    assert sorted(students(tmp_path / "moodle.zip").values()) == ["Anna (1)", "Ben (2)"]
    assert sorted(students(tmp_path / "canvas.zip").values()) == ["leeanna (12)"]
    # In a folder nobody can tell it from a student's archive, whose names are the student's choice.
    assert students(tmp_path) == {"canvas.zip: leeanna_12_34_x.ipynb": "canvas"}
    assert reasons(tmp_path)[f"moodle.zip: {names[0]}"] == (
        "it lies in an archive of moodle, and its name says Anna (1). If this is the archive of a whole class, grade "
        "it by itself"
    )


@pytest.mark.parametrize(
    ("name", "student"),
    [
        ("Week 3/1-2 - Anna Lee - Nov 27, 2026 1030 AM/x.ipynb", "Anna Lee"),
        ("W_ben_attempt_2026-11-27-10-30-00_x.ipynb", "ben"),
        ("Week 3/Submissions/Roy_Cy_cyroy_77/x.ipynb", "Cy Roy (cyroy)"),
    ],
)
def test_names_of_platforms_in_the_archive_of_a_class(tmp_path, name, student):
    put(tmp_path / "class.zip", archive({name: "{}"}))
    assert students(tmp_path / "class.zip") == {f"class.zip: {name}": student}
    # In a folder it may be a student's own.
    assert list(reasons(tmp_path)) == [f"class.zip: {name}"]


@pytest.mark.parametrize(
    ("outer", "inner", "owner"),
    [
        ("Two_222_assignsubmission_file_hw.zip", "One_1_assignsubmission_file_07.ipynb", "Two (222)"),
        ("Two_222_assignsubmission_file_/hw.zip", "One_1_assignsubmission_file_/07.ipynb", "Two (222)"),
        ("two_222_333_hw.zip", "one_1_67890_07.ipynb", "two (222)"),
        ("two/hw.zip", "One_1_assignsubmission_file_07.ipynb", "two"),
        ("two.zip", "one/07.ipynb", "two"),
        ("W_two_attempt_2026-11-27-10-30-00_hw.zip", "W_one_attempt_2026-11-27-10-30-00_07.ipynb", "two"),
        ("W/Submissions/Two_T_two_222/hw.zip", "Submissions/One_O_one_111/07.ipynb", "T Two (two)"),
    ],
)
def test_inside_of_a_students_archive_no_name_says_whose_it_is(tmp_path, outer, inner, owner):
    put(tmp_path / outer, archive({inner: "{}"}))
    assert {one.student for one in find(tmp_path)} == {owner}


def test_a_students_own_name_may_stand_inside_of_the_archive(tmp_path):
    """As in an archive that was taken from the platform and handed in again."""
    put(
        tmp_path / "Anna_1_assignsubmission_file_hw.zip",
        archive({"Anna_1_assignsubmission_file_07.ipynb": "{}"}),
    )
    assert list(students(tmp_path).values()) == ["Anna (1)"]


def test_an_archive_instead_of_a_folder(tmp_path):
    put(
        tmp_path / "class.zip",
        archive({"anna/x.ipynb": "{}", "ben.ipynb": "{}", "__MACOSX/anna/._x.ipynb": ""}),
    )
    assert sorted(students(tmp_path / "class.zip").values()) == ["anna", "ben"]


@pytest.mark.parametrize(
    "name", ["/etc/x.ipynb", "../x.ipynb", "a/../../x.ipynb", "C:/x.ipynb", "..\\x.ipynb"]
)
def test_a_path_that_leads_out_is_refused(tmp_path, name):
    put(tmp_path / "anna.zip", archive({name: "{}"}))
    ((_, reason),) = reasons(tmp_path).items()
    assert reason == "its path leads out of the archive"


def test_an_archive_in_an_archive_is_refused(tmp_path):
    put(tmp_path / "anna.zip", zipped(inner_dot_zip=zipped(x_dot_ipynb="{}")))
    assert reasons(tmp_path) == {"anna.zip: inner.zip": "an archive in an archive is not opened: unpack it"}


def test_a_link_in_an_archive_is_refused(tmp_path):
    member = zipfile.ZipInfo("x.ipynb")
    member.external_attr = (stat.S_IFLNK | 0o777) << 16
    put(tmp_path / "anna.zip", archive({member: "/etc/passwd"}))
    assert reasons(tmp_path) == {"anna.zip: x.ipynb": "this is a link: it is not followed"}


def test_links_are_not_followed(tmp_path):
    put(tmp_path / "secret.ipynb")
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "anna.ipynb").symlink_to(tmp_path / "secret.ipynb")
    (folder / "all").symlink_to(tmp_path)
    assert students(folder) == {}
    assert reasons(folder) == {"anna.ipynb": "this is a link, or no file: it is not followed"}


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path):
    put(tmp_path / "anna.zip", zipped(x_dot_ipynb=bytes(submissions.LARGEST + 1), y_dot_ipynb="{}"))
    assert (tmp_path / "anna.zip").stat().st_size < 100_000
    assert reasons(tmp_path) == {"anna.zip: x.ipynb": "it has 20 MB, and up to 20 are read"}
    assert students(tmp_path) == {"anna.zip: y.ipynb": "anna"}


def test_a_size_that_is_told_is_believed(tmp_path, monkeypatch):
    put(tmp_path / "anna.zip", zipped(x_dot_ipynb=bytes(submissions.LARGEST + 1)))
    monkeypatch.setattr(zipfile.ZipFile, "open", None)  # so that nothing can be unpacked
    assert reasons(tmp_path) == {"anna.zip: x.ipynb": "it has 20 MB, and up to 20 are read"}


def test_a_bomb_that_lies_about_its_size_is_refused(tmp_path):
    data = zipped(x_dot_ipynb=bytes(submissions.LARGEST + 10))
    size = (submissions.LARGEST + 10).to_bytes(4, "little")
    assert data.count(size) == 2
    put(tmp_path / "anna.zip", data.replace(size, (100).to_bytes(4, "little")))
    ((name, reason),) = reasons(tmp_path).items()
    assert name == "anna.zip: x.ipynb"
    assert reason.startswith(("it is damaged", "it has 20 MB"))


def test_many_files_together_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(submissions, "MOST_UNPACKED", 25)
    put(tmp_path / "anna.zip", archive({f"{i}.ipynb": "0123456789" for i in range(5)}))
    assert len(students(tmp_path)) == 2
    assert reasons(tmp_path) == {"anna.zip: 2.ipynb": "the notebooks of this archive are too large together"}


def test_an_archive_of_too_many_files_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(submissions, "MOST_MEMBERS", 2)
    put(tmp_path / "anna.zip", archive({f"{i}.ipynb": "" for i in range(3)}))
    assert reasons(tmp_path) == {"anna.zip": "it holds 3 files, and up to 2 are read"}


@pytest.mark.parametrize(
    "content",
    [b"", b"no archive", zipped(x_dot_ipynb="{}" * 100)[:60]],
    ids=["empty", "no archive", "cut off"],
)
def test_a_damaged_archive_is_refused(tmp_path, content):
    put(tmp_path / "anna.zip", content)
    assert reasons(tmp_path)["anna.zip"].startswith("it cannot be read as a zip file: ")


def test_a_damaged_file_in_an_archive_is_refused_alone(tmp_path):
    data = bytearray(zipped(x_dot_ipynb="abcdefgh" * 100, y_dot_ipynb="{}"))
    data[data.index(b"x.ipynb") + 10] ^= 0xFF
    put(tmp_path / "anna.zip", bytes(data))
    assert reasons(tmp_path)["anna.zip: x.ipynb"].startswith("it is damaged: ")
    assert students(tmp_path) == {"anna.zip: y.ipynb": "anna"}


def test_a_huge_notebook_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(submissions, "LARGEST", 10)
    put(tmp_path / "anna.ipynb", b"01234567890")
    assert list(reasons(tmp_path)) == ["anna.ipynb"]


@pytest.mark.skipif(os.name != "posix", reason="names are bytes on POSIX alone")
def test_names_that_are_no_text_are_told_all_the_same(tmp_path):
    try:
        put(tmp_path / os.fsdecode(b"\xff\xfe") / "x.ipynb")
    except OSError:
        pytest.skip("this file system takes text alone")
    assert students(tmp_path) == {"\ufffd\ufffd/x.ipynb": "\ufffd\ufffd"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "anna.ipynb")
    assert reasons(tmp_path) == {"anna.ipynb": "this is a link, or no file: it is not followed"}


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match="give the folder of the notebooks"):
        list(find(tmp_path / "nothing"))


@pytest.mark.skipif(not hasattr(time, "tzset"), reason="only POSIX changes a process's zone")
@pytest.mark.parametrize("zone", ["UTC", "Asia/Shanghai", "America/New_York"])
def test_a_time_in_an_archive_is_local_and_beside_a_file_s(zone, tmp_path, monkeypatch):
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    moment = 1.78e9
    member = zipfile.ZipInfo("x.ipynb", time.localtime(moment)[:6])
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as file:
        file.writestr(member, "{}")
    put(tmp_path / "anna.zip", memory.getvalue())
    (found,) = find(tmp_path)
    assert found.time == moment
    monkeypatch.undo()
    time.tzset()
