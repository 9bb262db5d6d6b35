"""A class graded by the command: the table, the pages, going on after an interruption."""

from __future__ import annotations

import csv
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import tracemalloc
import zipfile

import pytest
from classes import ROOT, Expected, class_of, environment, filled, grade

from bert_course.grade.__main__ import main
from bert_course.grade.answers import sheets
from bert_course.grade.grading import collect
from bert_course.grade.inside import as_nobody
from bert_course.grade.submissions import Refused
from bert_course.grade.table import Done, Row, as_csv
from bert_course.grade.verdict import Verdict
from processes import run_python

pytestmark = [
    pytest.mark.no_arrays,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="grading needs Linux or macOS"),
]

ON_LINUX = pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="looks at processes as Linux shows them"
)
FINE = "def score_scale(d_k, std_q, std_k):\n    return 1 / (math.sqrt(d_k) * std_q * std_k)\n"
WRONG = "def score_scale(d_k, std_q, std_k):\n    return 1 / math.sqrt(d_k)\n"


def hand_in(path, time=None, **answers):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(filled("one_head", answers)))
    if time:
        os.utime(path, (time, time))


def table(path):
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def states(path):
    return {(row["student"], row["exercise"]): row["right"] for row in table(path)}


# --- A small class ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def small_class(tmp_path_factory):
    """Six students with right and wrong answers; what was expected, what came, and the folder."""
    root = tmp_path_factory.mktemp("class")
    expected = class_of("one_head", "bank_one_head", 6, root / "in")
    result = grade(root / "in", root / "grades.csv", "--seed", "7")
    assert result.returncode == 0, result.stderr
    return expected, table(root / "grades.csv"), root, result


def test_every_verdict_is_as_in_the_bank(small_class):
    expected, rows, _, _ = small_class
    assert {(row["student"], row["exercise"]): row["right"] for row in rows} == {
        who: "yes" if one.right else "no" for who, one in expected.items()
    }
    for row in rows:
        for piece in expected[row["student"], row["exercise"]].pieces:
            assert piece in " ".join(row["message"].split())


def test_the_table_has_its_columns(small_class):
    _, rows, root, _ = small_class
    head = (root / "grades.csv").read_text(encoding="utf-8").splitlines()[0]
    assert head == '"student","notebook","exercise","right","message","seconds"'
    assert all(0 < float(row["seconds"]) < 10 for row in rows)


def test_a_summary_is_said(small_class):
    _, rows, root, result = small_class
    assert len(list((root / "grades-pages" / "students").glob("*.html"))) == 6
    wrong = sum(row["right"] == "no" for row in rows)
    assert result.stdout.splitlines()[0].startswith("6 students, 6 notebooks, 30 exercises: ")
    assert f"{wrong} no" in result.stdout
    assert str(root / "grades-pages" / "index.html") in result.stdout


def test_the_tool_that_grades_two_hundred_sees_a_verdict_that_is_not_as_in_the_bank(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "book" / "records" / "benchmarks"))
    differing = importlib.import_module("grade_class").differing
    expected = {("anna", name): Expected(name < "c", ("scaled",) if name >= "c" else ()) for name in "abcdef"}
    lines = [
        "student,exercise,right,message",
        "anna,a,yes,",
        "anna,b,no,",
        "anna,c,no,not  scaled",
        "anna,d,yes,scaled",
    ]
    (tmp_path / "grades.csv").write_text("\n".join([*lines, "anna,e,no,other words", "ben,a,yes,"]))
    found = [(row["student"], row["exercise"]) for row in differing(tmp_path / "grades.csv", expected)]
    assert found == [("anna", "b"), ("anna", "d"), ("anna", "e"), ("ben", "a"), ("anna", "f")]


def test_a_notebook_without_labels_is_graded_and_the_table_says_how(tmp_path):
    hand_in(tmp_path / "in" / "anna.ipynb", score_scale=FINE)
    made = filled("one_head", {"score_scale": FINE})
    for cell in made["cells"]:
        cell.pop("id", None)
        cell["metadata"] = {}
    (tmp_path / "in" / "ben.ipynb").write_text(json.dumps(made))
    assert grade(tmp_path / "in", tmp_path / "grades.csv").returncode == 0
    found = {
        row["student"]: row for row in table(tmp_path / "grades.csv") if row["exercise"] == "score_scale"
    }
    assert [row["right"] for row in found.values()] == ["yes", "yes"]
    assert found["anna"]["message"].startswith("score_scale: right.")
    assert found["ben"]["message"].startswith("Its cell does not say which exercise it answers")


CLASS = """
class Value:
    def __init__(self, x, parents=()):
        self.x, self.parents, self.grad = x, parents, 0.0
    def __add__(self, other): return Value(self.x + other.x, [(self, 1.0), (other, 1.0)])
    def __mul__(self, other): return Value(self.x * other.x, [(self, other.x), (other, self.x)])
    def tanh(self):
        t = math.tanh(self.x)
        return Value(t, [(self, 1 - t * t)])
"""
WITH_CLASS = """
def differentiate(program, numbers):
    leaves = [Value(x) for x in numbers]
    out, order, seen = program(*leaves), [], set()
    def visit(v):
        if id(v) not in seen:
            seen.add(id(v))
            for parent, _ in v.parents: visit(parent)
            order.append(v)
    visit(out)
    out.grad = 1.0
    for v in reversed(order):
        for parent, slope in v.parents: parent.grad += v.grad * slope
    return [leaf.grad for leaf in leaves]
"""


# Of each student, what is in a cell above the answer, and what must come of that.
OWN_CELLS = {
    "anna": (CLASS, "yes", "The notebook's cell 4 was run for it, as it defines what the answer uses. differentiate"),
    "ben": (CLASS + "open('/x', 'w')", "yes", "The notebook's cell 4 was run"),
    "cara": (f"from bert_course.check import exercise\n{CLASS}", "look by hand", "speaks of bert_course"),
    "dan": (CLASS.replace("Value:", "Other:"), "look by hand", "uses Value, which"),
}  # fmt: skip


def test_a_class_may_be_in_a_cell_of_its_own(tmp_path):
    (tmp_path / "in").mkdir()
    for student, (own, _, _) in OWN_CELLS.items():
        made = filled("reverse_mode", {"differentiate": WITH_CLASS})
        made["cells"].insert(3, {"cell_type": "code", "metadata": {}, "source": own})
        (tmp_path / "in" / f"{student}.ipynb").write_text(json.dumps(made))
    assert grade(tmp_path / "in", tmp_path / "grades.csv").returncode == 0
    rows = {
        row["student"]: row for row in table(tmp_path / "grades.csv") if row["exercise"] == "differentiate"
    }
    for student, (_, right, words) in OWN_CELLS.items():
        assert rows[student]["right"] == right, rows[student]
        assert words in rows[student]["message"]


# --- Going on --------------------------------------------------------------------------------------------


def test_what_is_graded_is_not_run_again(tmp_path):
    hand_in(tmp_path / "in" / "anna.ipynb", score_scale=FINE)
    hand_in(tmp_path / "in" / "ben.ipynb", score_scale=WRONG)
    out = tmp_path / "grades.csv"
    assert grade(tmp_path / "in", out).returncode == 0
    state = tmp_path / "grades.csv.state.json"
    kept = lines_of(state)
    assert len(kept) == 2
    for line in kept:
        line["verdict"]["more"] = "from the file"
    state.write_text("".join(json.dumps(line) + "\n" for line in kept))
    hand_in(tmp_path / "in" / "ben.ipynb", score_scale=FINE + "# mended")
    assert grade(tmp_path / "in", out).returncode == 0
    found = {row["student"]: row for row in table(out) if row["exercise"] == "score_scale"}
    assert "from the file" in found["anna"]["message"]
    assert found["ben"]["message"].startswith("score_scale: right. 4 cases")
    assert grade(tmp_path / "in", out, "--again").returncode == 0
    found = {row["student"]: row for row in table(out) if row["exercise"] == "score_scale"}
    assert found["anna"]["message"].startswith("score_scale: right. 4 cases")


def test_answers_that_are_the_same_are_run_once(tmp_path):
    for student in ("anna", "ben", "zoë"):
        hand_in(tmp_path / "in" / f"{student}.ipynb", score_scale=FINE)
    assert grade(tmp_path / "in", tmp_path / "grades.csv").returncode == 0
    assert len(lines_of(tmp_path / "grades.csv.state.json")) == 1
    assert [one for (_, name), one in states(tmp_path / "grades.csv").items() if name == "score_scale"] == [
        "yes"
    ] * 3


def lines_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


DAMAGE = [
    b"",
    b"{",
    b"[]",
    b"1",
    b'{"x": 1}',
    b'{"key": "x"}',
    b'{"key": "y", "verdict": {"right": "maybe"}}',
    b"\xff",
]


@pytest.mark.parametrize(
    "damage", [*DAMAGE, b'{"key": "y", "verdict": null}', b'{"key": "y", "exercise": "po']
)
def test_a_damaged_line_of_what_was_graded_is_left_aside(tmp_path, damage):
    path = tmp_path / "state.json"
    done = Done(path)
    verdict = Verdict("yes", paragraphs=["a", "b"], seconds=1.5)
    done.end("x", verdict)
    assert Done(path).verdicts == {"x": verdict}
    path.write_bytes(damage + b"\n" + path.read_bytes() + damage)
    assert Done(path).verdicts == {"x": verdict}


def test_what_began_and_did_not_end_is_looked_at_by_hand(tmp_path):
    done = Done(tmp_path / "state.json")
    done.begin("a", "pool")
    done.begin("b", "attend")
    done.end("a", Verdict("no"))
    found = Done(tmp_path / "state.json").verdicts
    assert (found["a"].right, found["b"].right) == ("no", "look by hand")
    assert found["b"].message.startswith(
        "attend: not judged. Grading was ended, from outside or by an answer"
    )
    done.save()  # as at the end of a run, also of one that was stopped
    assert set(Done(tmp_path / "state.json").verdicts) == {"a"}


@pytest.mark.parametrize("right", ["timed out", "crashed"])
def test_what_a_busy_machine_may_have_caused_is_tried_again(tmp_path, right):
    done = Done(tmp_path / "state.json")
    for save in (lambda: None, done.save):
        done.begin("a", "pool")
        done.end("a", Verdict(right))
        save()
        assert Done(tmp_path / "state.json").verdicts == {}
    assert done.verdicts["a"].right == right  # of this run


def test_an_answer_that_ran_out_of_time_is_run_again(tmp_path):
    """It ends once a file is there that was not there at first."""
    flag = tmp_path / "flag"
    slow = (
        f"import os\ndef score_scale(d_k, std_q, std_k):\n    while not os.path.exists({str(flag)!r}): pass\n"
    )
    hand_in(tmp_path / "in" / "anna.ipynb", score_scale=slow + FINE.partition("\n")[2])
    out = tmp_path / "grades.csv"
    assert grade(tmp_path / "in", out, "--timeout", "1").returncode == 0
    assert states(out)["anna", "score_scale"] == "timed out"
    flag.touch()
    assert grade(tmp_path / "in", out).returncode == 0
    assert states(out)["anna", "score_scale"] == "yes"


KILL = """
import os, signal, sys
from bert_course.grade import guard
from bert_course.grade.__main__ import main
guard.TAKEN.clear()  # as if the answer had found a way around that
sys.exit(main(sys.argv[1:]))
"""


@ON_LINUX
def test_an_answer_that_ends_the_grader_costs_nobody_else_a_verdict(tmp_path):
    killer = "import os, signal\ndef score_scale(*_):\n    signal.pidfd_send_signal(os.pidfd_open(os.getppid()), 9)\n"
    for student, source in (("anna", FINE), ("ben", killer), ("cara", FINE + "# other")):
        hand_in(tmp_path / "in" / f"{student}.ipynb", score_scale=source)
    out = tmp_path / "grades.csv"
    call = [str(tmp_path / "in"), "--out", str(out), "--jobs", "1"]
    assert run_python(KILL, *call, timeout=120).returncode == -signal.SIGKILL
    assert run_python(KILL, *call, timeout=120).returncode == 0
    found = {row["student"]: row for row in table(out) if row["exercise"] == "score_scale"}
    assert {name: row["right"] for name, row in found.items()} == {
        "anna": "yes",
        "ben": "look by hand",
        "cara": "yes",
    }
    assert "Grading was ended, from outside or by an answer, while this one ran" in found["ben"]["message"]
    assert run_python(KILL, *call, timeout=120).returncode == 0  # nor does it in the next run


def test_no_cell_of_the_table_is_a_formula_or_obeyed_by_a_terminal():
    names = [
        "=1+1",
        "+1",
        "-1",
        "@a",
        "＝1+1",
        " =1",
        "x;=1+1",
        "a\x1b[31m",
        "tab\t=1",
        "\u202eabc",
        "Zoë 数",
        "a\ud800",
    ]
    rows = [Row(name, name, "one_head", "attend", Verdict("no", name)) for name in names]
    text = as_csv(rows, [Refused(name, name, name) for name in names]).decode()
    assert all(one.isprintable() for line in text.split("\r\n") for one in line)
    for line in text.split("\r\n")[1:-1]:
        assert line.startswith('"')
        assert line.endswith('"')
        assert line.count('","') == 5
    read = [row[0] for row in csv.reader(text.splitlines())][1 : len(names) + 1]
    assert read[:6] == ["'=1+1", "'+1", "'-1", "'@a", "'＝1+1", "'=1"]
    assert read[6:] == ["x;'=1+1", r"a\x1b[31m", "tab =1", r"\u202eabc", "Zoë 数", r"a\ud800"]


@pytest.mark.parametrize("text", ["x;=1+1;", "x; ＝1+1;", 'x;"=1+1&"";', "x;;-1;", "ok; fine; @a"])
def test_no_cell_is_a_formula_where_semicolons_part_the_cells(text):
    """As in Excel in German or French, to which the quotes around the commas are text."""
    row = Row(text, text, "one_head", "attend", Verdict("no", text))
    table = as_csv([row], [Refused(text, text, text)]).decode()
    cells = [cell.lstrip() for line in csv.reader(table.splitlines(), delimiter=";") for cell in line]
    assert len(cells) > 3
    assert [cell for cell in cells if cell.startswith(tuple("=+-@＝＋－＠"))] == []


@ON_LINUX
def test_ctrl_c_keeps_what_was_graded_and_leaves_no_process(tmp_path):
    hand_in(tmp_path / "in" / "anna.ipynb", score_scale=FINE)
    slow = "import time\ndef score_scale(d_k, std_q, std_k):\n    time.sleep(600)  # of a test\n"
    hand_in(tmp_path / "in" / "ben.ipynb", score_scale=slow)
    out, state = tmp_path / "grades.csv", tmp_path / "grades.csv.state.json"
    command = [sys.executable, "-m", "bert_course.grade", str(tmp_path / "in"), "--out", str(out)]
    options = {"env": environment(), "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([*command, "--jobs", "1", "--timeout", "100"], **options)
    asleep = 0
    for _ in range(1200):  # until the second answer runs: it alone sleeps
        time.sleep(0.1)
        asleep = asleep + 1 if _a_child_sleeps(process.pid) else 0
        if asleep == 10:
            break
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "the same command goes on from here" in errors
    assert states(out)["anna", "score_scale"] == "yes"
    assert states(out)["ben", "score_scale"] == "not graded yet"
    pages = out.with_name("grades-pages")
    assert "Grading was interrupted: 1 of 10 exercises have" in (pages / "index.html").read_text()
    assert len(lines_of(state)) == 1
    result = grade(tmp_path / "in", out, "--timeout", "1", "--jobs", "1")
    assert result.returncode == 0
    assert states(out)["ben", "score_scale"] == "timed out"


def _a_child_sleeps(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            (child,) = file.read().split()
        with open(f"/proc/{child}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "S"
    except (OSError, ValueError):
        return False


# --- Which notebook counts -------------------------------------------------------------------------------


def test_the_newest_notebook_counts(tmp_path):
    hand_in(tmp_path / "in" / "anna" / "b.ipynb", time=1_000_000, score_scale=WRONG)
    hand_in(tmp_path / "in" / "anna" / "a.ipynb", time=2_000_000, score_scale=FINE)
    handed_in, refused = collect(tmp_path / "in", sheets(ROOT / "exercises"))
    assert [one.answers["score_scale"].source for one in handed_in] == [FINE]
    assert refused == [Refused("anna", "anna/b.ipynb", "anna/a.ipynb is newer, and is the one that counts")]


def refusals(tmp_path):
    """Names of what was not graded, and why; and whose notebooks count."""
    handed_in, refused = collect(tmp_path / "in", sheets(ROOT / "exercises"))
    return {one.name: one.reason for one in refused}, [one.student for one in handed_in]


def test_of_two_notebooks_of_one_date_none_counts(tmp_path):
    """As after a copy: a date of git says nothing."""
    hand_in(tmp_path / "in" / "anna" / "b.ipynb", time=2_000_000, score_scale=WRONG)
    hand_in(tmp_path / "in" / "anna" / "a.ipynb", time=2_000_001, score_scale=FINE)
    found, counts = refusals(tmp_path)
    assert counts == []
    assert list(found) == ["anna/a.ipynb", "anna/b.ipynb"]
    why = "anna/a.ipynb and anna/b.ipynb have the same date, as after a copy or from git: keep the one that counts"
    assert set(found.values()) == {why}


def test_two_notebooks_with_the_same_answers_are_as_one(tmp_path):
    for name in ("a", "b"):
        hand_in(tmp_path / "in" / "anna" / f"{name}.ipynb", time=2_000_000, score_scale=FINE)
    found, counts = refusals(tmp_path)
    assert counts == ["anna"]
    assert found == {"anna/a.ipynb": "anna/b.ipynb is newer, and is the one that counts"}


def test_folders_of_several_students_are_not_taken_for_one(tmp_path):
    hand_in(tmp_path / "in" / "late" / "quinn" / "x.ipynb", time=1_000_000, score_scale=WRONG)
    hand_in(tmp_path / "in" / "late" / "rosa" / "x.ipynb", time=2_000_000, score_scale=FINE)
    found, counts = refusals(tmp_path)
    assert counts == []
    names = ["late/quinn/x.ipynb", "late/rosa/x.ipynb"]
    assert sorted(found) == names
    assert all(
        f"{' and '.join(names)} lie in several folders of late. If these" in why for why in found.values()
    )


MOODLE = "One_1_assignsubmission_file_07.ipynb"


def in_archive(path, name, **answers):
    """A zip file with one notebook, which says that it was made in 2030."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(zipfile.ZipInfo(name, (2030, 1, 1, 0, 0, 0)), json.dumps(filled("one_head", answers)))


@pytest.mark.parametrize(
    ("own", "archive", "inside"),
    [(MOODLE, "Two_2_assignsubmission_file_hw.zip", MOODLE), ("one.ipynb", "two.zip", "one.ipynb")],
)
def test_a_students_archive_replaces_nothing_of_anothers(tmp_path, own, archive, inside):
    hand_in(tmp_path / "in" / own, time=1_000_000, score_scale=FINE)
    in_archive(tmp_path / "in" / archive, inside, score_scale=WRONG)
    handed_in, _ = collect(tmp_path / "in", sheets(ROOT / "exercises"))
    one, *others = [found for found in handed_in if found.student.casefold().startswith("one")]
    assert others == []
    assert one.answers["score_scale"].source == FINE


def test_of_two_sources_that_claim_one_student_neither_is_graded(tmp_path):
    """The second is what somebody unpacked from another's archive."""
    name = "One_1_assignsubmission_file_07.ipynb"
    hand_in(tmp_path / "in" / name, time=1_000_000, score_scale=FINE)
    hand_in(tmp_path / "in" / "two" / name, time=2_000_000, score_scale=WRONG)
    hand_in(tmp_path / "in" / "three.ipynb", score_scale=FINE)
    found, counts = refusals(tmp_path)
    assert counts == ["three"]
    assert list(found) == [name, f"two/{name}"]
    for why in found.values():
        assert why.startswith(
            f"{name} and two/{name} both say that they are of One (1), in different folders"
        )


def test_two_files_of_a_student_on_a_platform_are_one_source(tmp_path):
    hand_in(tmp_path / "in" / "One_1_assignsubmission_file_07.ipynb", time=1_000_000, score_scale=WRONG)
    in_archive(tmp_path / "in" / "One_1_assignsubmission_file_new.zip", "any.ipynb", score_scale=FINE)
    found, counts = refusals(tmp_path)
    assert counts == ["One (1)"]
    assert list(found) == ["One_1_assignsubmission_file_07.ipynb"]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (
            "Week 3_leeanna_attempt_2026-11-27-10-30-00_a.ipynb",
            "Week 4_leeanna_attempt_2026-12-04-10-30-00_b.ipynb",
        ),
        (
            "3/12-34 - Anna Lee - Nov 27, 2026 1030 AM/a.ipynb",
            "4/13-34 - Anna Lee - Dec 4, 2026 1030 AM/b.ipynb",
        ),
        ("3/Submissions/Lee_Anna_al_77/a.ipynb", "4/Submissions/Lee_Anna_al_77/b.ipynb"),
    ],
)
def test_two_chapters_on_a_platform_are_of_one_student(tmp_path, first, second):
    hand_in(tmp_path / "in" / first, score_scale=FINE)
    (tmp_path / "in" / second).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / "in" / second).write_text(
        json.dumps(filled("arrays", {"unbroadcast": "def unbroadcast(): 1"}))
    )
    found, counts = refusals(tmp_path)
    assert found == {}
    assert len(counts) == 2
    assert len(set(counts)) == 1


def test_of_two_attempts_on_a_platform_the_later_one_counts(tmp_path):
    """By their names: unpacked from an archive, both may have the date of the download."""
    old, new = "W_al_attempt_2026-11-27-10-30-00_a.ipynb", "W_al_attempt_2026-11-27-10-30-05_b.ipynb"
    hand_in(tmp_path / "in" / old, time=2_000_000, score_scale=WRONG)
    hand_in(tmp_path / "in" / new, time=1_000_000, score_scale=FINE)
    found, counts = refusals(tmp_path)
    assert found == {old: f"{new} is newer, and is the one that counts"}
    assert len(counts) == 1


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("W_a_lee_attempt_2026-11-27-10-30-00_a.ipynb", "W_b_lee_attempt_2026-11-27-10-35-00_a.ipynb"),
        (
            "1-9 - Anna Lee - Nov 27, 2026 1030 AM - a.ipynb",
            "2-9 - Anna Lee - Nov 27, 2026 1035 AM - a.ipynb",
        ),
    ],
)
def test_two_students_whose_names_may_be_the_same_are_not_taken_for_one(tmp_path, one, two):
    hand_in(tmp_path / "in" / one, score_scale=WRONG)
    hand_in(tmp_path / "in" / two, score_scale=FINE)
    found, counts = refusals(tmp_path)
    assert counts == []
    assert sorted(found) == [one, two]
    assert all("If these are two students, grade them one by one" in why for why in found.values())


def test_a_folder_inside_a_students_own_is_the_same_students(tmp_path):
    hand_in(tmp_path / "in" / "anna" / "old" / "x.ipynb", time=1_000_000, score_scale=WRONG)
    hand_in(tmp_path / "in" / "anna" / "x.ipynb", time=2_000_000, score_scale=FINE)
    found, counts = refusals(tmp_path)
    assert counts == ["anna"]
    assert list(found) == ["anna/old/x.ipynb"]


def test_who_handed_in_no_notebook_is_told(tmp_path):
    hand_in(tmp_path / "in" / "anna.ipynb", score_scale=FINE)
    for name in (
        "anna/notes.txt",
        "ben/a.pdf",
        "ben/b.py",
        "cleo/x.ipynb.txt",
        "dan/.ipynb_checkpoints/x.ipynb",
    ):
        (tmp_path / "in" / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / "in" / name).write_text("")
    (tmp_path / "in" / "anna" / "empty").mkdir()
    found, counts = refusals(tmp_path)
    assert counts == ["anna"]
    assert found == {
        "ben/a.pdf": "this is no notebook (.ipynb), nor are 1 more",
        "cleo/x.ipynb.txt": "its name does not end in .ipynb: rename it",
        "dan": "there is nothing in it that is not hidden, as Jupyter's .ipynb_checkpoints is",
    }


def test_answers_in_the_notebook_of_another_chapter_are_told(tmp_path):
    made = filled("one_head", {"score_scale": FINE})
    made["cells"] += [
        one
        for one in filled("arrays", {})["cells"]
        if one["metadata"].get("course", {}).get("exercise") == "unbroadcast"
    ]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "anna.ipynb").write_text(json.dumps(made))
    found, counts = refusals(tmp_path)
    assert counts == ["anna"]
    assert found == {
        "anna.ipynb": "its answers to unbroadcast are not graded: each chapter has a notebook of its own"
    }


def test_where_nothing_can_be_graded_the_table_stays(tmp_path, capsys):
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "anna.ipynb").write_text("{")
    out = tmp_path / "grades.csv"
    out.write_text("of last week")
    assert main([str(tmp_path / "in"), "--out", str(out)]) == 2
    error = capsys.readouterr().err
    assert "there is no notebook to grade in" in error
    assert "anna.ipynb: this is no notebook: its text is not JSON" in error
    assert out.read_text() == "of last week"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["grades.csv", "in"]


def test_a_class_may_be_larger_than_the_memory(tmp_path):
    """Of each notebook, the answers are kept and not its text: here 5 MB, of which 15 take 15 times as much."""
    for number in range(15):
        made = filled("one_head", {"score_scale": FINE})
        made["metadata"]["long"] = "x" * 5_000_000
        (tmp_path / f"{number}.ipynb").write_text(json.dumps(made))
    course = sheets(ROOT / "exercises")
    tracemalloc.start()
    try:
        handed_in, refused = collect(tmp_path, course)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (len(handed_in), refused) == (15, [])
    assert peak < 30_000_000


# --- Calls that cannot be --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["nothing", "--out", "x.csv"], "there is no nothing: give the folder"),
        (["empty", "--out", "x.csv"], "there is no notebook to grade in empty"),
        (["empty", "--out", "x.txt"], "--out names the table to write"),
        (["empty", "--out", "no/x.csv"], "there is no folder no to write x.csv into"),
        (["empty", "--out", "x.csv", "--course", "empty"], "has no exercises: give the course's folder"),
        (["empty", "--out", "x.csv", "--seed", "0"], "'0' is no whole number from 1"),
        (["empty", "--out", "x.csv", "--memory", "1M"], "'1M' is no amount of memory from 256M on"),
        (["empty", "--out", "x.csv", "--timeout", "0"], "'0' is no number of seconds"),
        (["empty"], "required: --out"),
    ],
)
def test_a_call_that_cannot_be_says_why(tmp_path, monkeypatch, capsys, options, words):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").mkdir()
    try:
        status = main(options)
    except SystemExit as end:
        status = end.code
    assert status == 2
    assert words in capsys.readouterr().err


# --- Processes -------------------------------------------------------------------------------------------

RUN = """
import sys
from pathlib import Path
from bert_course.grade import grading, guard, process
from bert_course.grade.answers import sheets
from bert_course.grade.inside import Limits
guard.install = lambda *_: lambda: 0  # what is below stands behind that
course = sheets(Path(sys.argv[1]) / "exercises")
task = grading.right_task(course, "score_scale", sys.argv[2])
"""


def run_alone(source, more):
    return run_python(RUN + more, ROOT, source, timeout=120)


@ON_LINUX
@pytest.mark.parametrize("leaves", [False, True])
def test_processes_that_an_answer_leaves_are_ended(leaves):
    """One that stays in its group, which is ended everywhere, and one that left it, which Linux gives to the grader."""
    source = (
        "import os, time\n"
        "def score_scale(d_k, std_q, std_k):\n"
        "    if os.fork() == 0:\n"
        f"        if {leaves}: os.setsid()\n"
        "        if os.fork() == 0:\n"
        "            os.write(1, b'<%d>' % os.getpid())\n"
        "            time.sleep(600)\n"
        "        os._exit(0)\n"
        "    time.sleep(0.2)\n"
        "    return 1 / (d_k**0.5 * std_q * std_k)\n"
    )
    without = "" if leaves else "process._adopt_orphans = lambda: None\n"
    result = run_alone(
        source,
        without
        + "((_, found),) = process.run_all([('', task)], 1, Limits(), 1)\nprint(found.right, found.printed)",
    )
    said, _, pids = result.stdout.partition(" ")
    assert said == "yes", result.stderr
    numbers = [int(pid) for pid in re.findall(r"<(\d+)>", pids)]
    assert len(numbers) == 4  # one for each case
    deadline = time.monotonic() + 10
    while alive := [pid for pid in numbers if is_alive(pid)]:
        assert time.monotonic() < deadline, alive
        time.sleep(0.05)


def is_alive(pid):
    """Whether a process runs: one that has ended, and that nobody has asked about, does not."""
    try:
        os.kill(pid, 0)
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def test_a_machine_on_which_nothing_is_found_right_is_told():
    result = run_alone(
        "def score_scale(*_): return 0",
        "try: process.self_test(lambda name: task, Limits(), 1)\n"
        "except process.CannotRun as error: print(error)",
    )
    assert result.stdout.startswith("even a right answer to "), result.stderr
    assert "score_scale: not yet." in result.stdout


def test_the_files_of_an_answer_have_a_limit_together():
    source = (
        "import time\ndef score_scale(*_):\n    for i in range(100):\n"
        "        with open(str(i), 'wb') as file: file.write(bytes(1_000_000))\n"
        "    time.sleep(600)\n"
    )
    result = run_alone(
        source,
        "((_, found),) = process.run_all([('', task)], 1, Limits(disk=10_000_000), 1)\n"
        "print(found.right, found.more, found.seconds < 5)",
    )
    assert (
        result.stdout == "crashed Its files had more than 10,000,000 bytes together, and it was ended. True\n"
    )


def test_matplotlib_finds_its_list_of_fonts():
    """It takes seconds to make, of the ten that an answer has."""
    pytest.importorskip("matplotlib")
    source = (
        "import os  # and matplotlib\n"
        "def score_scale(*_): raise ValueError(os.listdir(os.environ['MPLCONFIGDIR']), os.path.isdir('MPLCONFIGDIR'))"
    )
    result = run_alone(
        source, "((_, found),) = process.run_all([('', task)], 1, Limits(), 1)\nprint(found.symptom)"
    )
    assert re.search(r"\['fontlist-.+\.json'\], True", result.stdout), result.stderr


def test_an_answer_runs_in_a_folder_of_its_own_that_goes():
    source = (
        "import os\ndef score_scale(*_):\n    open('x', 'w').close()\n"
        "    raise ValueError(os.getcwd(), os.listdir())\n"
    )
    result = run_alone(
        source,
        "((_, found),) = process.run_all([('', task)], 1, Limits(), 1)\n"
        'where = found.symptom.split("\'")[1]\n'
        "print(found.symptom.split('[')[1].split(']')[0], Path(where).name[:16], Path(where).exists())",
    )
    assert result.stdout == "'x' minigrad-answer- False\n", result.stderr


def test_a_clock_that_rings_while_the_check_tells_of_it_does_not_say_that_the_cell_was_slow():
    """As on a slow machine, where it takes a while to give back the memory that a function has filled."""
    result = run_alone(
        "def score_scale(*_): pass",
        "import time\nfrom bert_course.check.exercise import Exercise\n"
        "Exercise.report = lambda *_: time.sleep(60)\n"
        "((_, found),) = process.run_all([('', task)], 1, Limits(seconds=1), 1)\nprint(found.right, found.more)",
    )
    assert result.stdout == "timed out It was in the function, or in the check of what it returned.\n", (
        result.stderr
    )


@pytest.mark.skipif(
    not as_nobody(), reason="only root can drop its rights, and only where nobody can read Python"
)
def test_root_drops_its_rights():
    source = (
        "import os\ndef score_scale(*_):\n    try: os.setuid(0)\n    except OSError: pass\n"
        "    raise ValueError(os.getuid(), os.geteuid(), os.getgid(), os.getgroups(), os.stat('.').st_uid)\n"
    )
    result = run_alone(
        source, "((_, found),) = process.run_all([('', task)], 1, Limits(), 1)\nprint(found.symptom)"
    )
    assert "ValueError: (65534, 65534, 65534, [], 65534)" in result.stdout, result.stderr


def test_paths_from_the_folder_of_the_call_are_kept_from_answers(tmp_path):
    """As the page for instructors has them: `handed-in/ --out grades.csv`; and an answer may read what it wrote."""
    (tmp_path / "grades.csv.state.json").write_text("{}")
    (tmp_path / "free.txt").write_text("free")
    read = f"def score_scale(*_):\n    return open('{tmp_path}/' + NAME).read()\n"
    for student, name in (("anna", "in/ben.ipynb"), ("ben", "grades.csv.state.json"), ("cara", "free.txt")):
        hand_in(tmp_path / "in" / f"{student}.ipynb", score_scale=f"NAME = {name!r}\n{read}")
    own = "def score_scale(*_):\n    open('x', 'w').close()\n    raise ValueError(open('x').read() == '')\n"
    hand_in(tmp_path / "in" / "dan.ipynb", score_scale=own)
    result = grade("in/", "grades.csv", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    rows = table(tmp_path / "grades.csv")
    said = {row["student"]: row["message"] for row in rows if row["exercise"] == "score_scale"}
    assert "may not read" in said["anna"]
    assert "may not read" in said["ben"]
    assert "returned 'free'" in said["cara"]
    assert "ValueError: True" in said["dan"]


@pytest.mark.parametrize(("system", "fails"), [("darwin", False), ("linux", True)])
def test_macos_has_no_limit_of_memory_and_grades_all_the_same(system, fails, monkeypatch):
    """There RLIMIT_AS is refused; elsewhere that is an error, as nothing would stop an answer."""
    from bert_course.grade import inside

    wanted = {}

    def setrlimit(kind, limits):
        if kind == inside.resource.RLIMIT_AS:
            raise ValueError("current limit exceeds maximum limit")
        wanted[kind] = limits

    monkeypatch.setattr(inside.resource, "setrlimit", setrlimit)
    monkeypatch.setattr(inside.sys, "platform", system)
    monkeypatch.setattr(inside, "as_nobody", lambda: False)
    if fails:
        with pytest.raises(ValueError, match="maximum limit"):
            inside._limit(inside.Limits())
    else:
        inside._limit(inside.Limits())
        assert inside.resource.RLIMIT_FSIZE in wanted
