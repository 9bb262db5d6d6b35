"""What the reader sees of a run, and how signals stop it."""

from __future__ import annotations

import io
import os
import re
import signal
import threading

import pytest
import tiny
from tiny import before_step, checkpoints, quietly

import processes
from minigrad.training import progress as module
from minigrad.training.folders import latest_checkpoint
from minigrad.training.progress import Progress

posix = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX")


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


PIECES = ["MLM 5.83 (words alone 6.15)", "NSP 0.67 (a coin 0.69)", "rate 2.0e-03", "12.3k tokens/s"]


@pytest.mark.no_arrays
def test_in_a_log_file_lines_and_no_bar():
    file = io.StringIO()
    with Progress(0, 3, None, file) as progress:
        for _ in range(3):
            progress.show(PIECES)
            progress.advance()
        progress.say("a line")
    lines = file.getvalue().splitlines()
    assert lines == [
        "step 3/3  MLM 5.83 (words alone 6.15)  NSP 0.67 (a coin 0.69)  rate 2.0e-03  12.3k tokens/s  0.0 min left",
        "a line",
    ]
    assert "\r" not in file.getvalue()


@pytest.mark.no_arrays
def test_in_a_log_file_a_line_every_ten_seconds(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(module.time, "perf_counter", lambda: clock[0])
    file = io.StringIO()
    with Progress(100, 200, None, file) as progress:
        for _ in range(100):
            clock[0] += 1.5
            progress.show(PIECES)
            progress.advance()
    lines = file.getvalue().splitlines()
    assert lines[0].startswith("step 107/200 ")
    assert lines[0].endswith("2.3 min left")  # 93 steps of 1.5 s
    assert len(lines) == 15
    assert lines[-1].startswith("step 200/200 ")


@pytest.mark.no_arrays
def test_in_a_terminal_a_bar():
    file = Terminal()
    with Progress(2, 5, None, file) as progress:
        for _ in range(3):
            progress.show(PIECES)
            progress.advance()
        progress.bar.refresh()
        progress.say("a line above")
    text = file.getvalue()
    assert "\r" in text
    assert "2/5" in text
    assert "5/5" in text
    assert "MLM 5.83 (words alone 6.15)  NSP 0.67 (a coin 0.69)  rate 2.0e-03  12.3k tokens/s" in text
    assert "a line above\n" in text
    assert "min left" not in text


@pytest.mark.no_arrays
@pytest.mark.parametrize(
    ("columns", "shown"), [(30, 0), (50, 1), (60, 1), (80, 2), (99, 3), (105, 2), (115, 3), (150, 4)]
)
def test_a_bar_shows_whole_pieces_and_stays_in_its_line(monkeypatch, columns, shown):
    """What is most important comes first; a figure that is cut would be another figure."""
    monkeypatch.setattr(module.Unfailing, "columns", lambda self: columns)
    file = Terminal()
    with Progress(0, 4000, None, file) as progress:
        progress.bar.dynamic_ncols = lambda _: (columns - 1, 24)  # as of a terminal: tqdm cuts there
        progress.bar.start_t -= 100
        progress.bar.n = 2000
        progress.show(PIECES)
        progress.bar.refresh()
        first = file.getvalue().split("\r")[-1].rstrip()
        progress.bar.n = progress.bar.total
        progress.bar.refresh()
        last = file.getvalue().split("\r")[-1].rstrip()
    for text in (first, last):
        assert len(text) < columns
        assert text.endswith(("left", "step/s", *PIECES[shown - 1 : shown]))
        assert [piece in text for piece in PIECES] == [True] * shown + [False] * (len(PIECES) - shown)
        assert ("%|" in text) is (columns >= module.WIDE)


@pytest.mark.no_arrays
def test_a_bar_stays_in_its_line_when_its_numbers_grow(monkeypatch):
    for columns in range(30, 170):
        monkeypatch.setattr(module.Unfailing, "columns", lambda self, columns=columns: columns)
        file = Terminal()
        with Progress(0, 4000, None, file) as progress:
            progress.bar.start_t -= 10
            progress.bar.n = 200
            progress.show(PIECES)
            progress.bar.start_t -= 190  # as fast as before
            progress.bar.n = progress.bar.total
            progress.bar.refresh()
            assert len(file.getvalue().split("\r")[-1].rstrip()) < columns


@pytest.mark.no_arrays
@pytest.mark.parametrize("stream", [io.StringIO, Terminal])
def test_a_report_takes_each_line(stream):
    file, lines = stream(), []
    with Progress(0, 1, lines.append, file) as progress:
        progress.say("a line")
    assert lines == ["a line"]
    assert "a line" not in file.getvalue()


def test_a_run_prints_its_lines_on_stderr(tmp_path, capsys):
    tiny.pretraining(tmp_path).run()
    out, err = capsys.readouterr()
    assert out == ""
    lines = err.splitlines()
    assert [line.split(":")[0].split("/")[0] for line in lines] == ["step 5", "step 10", "step 10"]
    assert re.match(
        r"step 5: held out MLM loss \d\.\d{3} \(\d\.\d\d (below|above) word frequencies\), accuracy \d+\.\d%; "
        r"NSP loss \d\.\d{3}, accuracy \d+\.\d%",
        lines[0],
    )


@pytest.mark.no_arrays
def test_the_speed_is_measured_without_the_time_away(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr(module.time, "perf_counter", lambda: clock[0])
    with Progress(0, 3, None, io.StringIO()) as progress:
        clock[0] += 100
        progress.measure()
        clock[0] += 2
        with progress.away():
            clock[0] += 50
        clock[0] += 2
        assert progress.speed(12) == 3
        progress.measure()
        clock[0] += 1
        assert progress.speed(12) == 12


# --- Stopping --------------------------------------------------------------------------------------------


SIGNALLED = """
import os, signal, sys, time
import tiny
output, first, second, where = sys.argv[1:]
if first in ("ignored", "own"):
    signal.signal(signal.SIGTERM, signal.SIG_IGN if first == "ignored" else lambda *_: None)
run = tiny.pretraining(output)
before = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
train_step, save = run.train_step, run.save

def send(*names):
    if where == "at once":  # between two instructions of Python
        numbers = {getattr(signal, name) for name in names}
        signal.pthread_sigmask(signal.SIG_BLOCK, numbers)
        for number in numbers:
            os.kill(os.getpid(), number)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, numbers)
        return
    for name in names:
        os.kill(os.getpid(), getattr(signal, name))
        time.sleep(0.05)  # a handler runs between two instructions of Python

def step(tally):
    if run.step == 5:
        if first in ("ignored", "own"):
            send("SIGTERM")
        elif where != "save" and second != "none":
            send(first, second)
        else:
            send(first)
    return train_step(tally)

def slow_save():
    if run.step == 6 and where == "save":
        send(second)
    return save()

run.train_step, run.save = step, slow_save
run.run(print)
assert before == [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
print(run.stopped_by)
"""


@pytest.mark.no_arrays
@posix
@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_to_end_finishes_the_step_saves_and_stops(tmp_path, name):
    done = processes.run_python(SIGNALLED, tmp_path, name, "none", "step")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-2:] == [
        "stopped at step 6 of 10 and saved; go on with --resume",
        str(int(getattr(signal, name))),
    ]
    assert checkpoints(tmp_path) == ["checkpoint-000004", "checkpoint-000006"]


@pytest.mark.no_arrays
@posix
@pytest.mark.parametrize("where", ["step", "save"])
def test_a_second_ctrl_c_ends_the_process_at_once(tmp_path, where):
    done = processes.run_python(SIGNALLED, tmp_path, "SIGINT", "SIGINT", where)
    assert done.returncode == -signal.SIGINT
    assert done.stderr == ""
    assert checkpoints(tmp_path) == ["checkpoint-000004"]


@pytest.mark.no_arrays
@posix
@pytest.mark.parametrize(
    ("first", "second", "where"),
    [
        ("SIGTERM", "SIGTERM", "step"),
        ("SIGHUP", "SIGHUP", "save"),
        ("SIGTERM", "SIGHUP", "at once"),
        ("SIGTERM", "SIGINT", "step"),
        ("SIGINT", "SIGTERM", "save"),
        ("SIGINT", "SIGTERM", "at once"),
    ],
)
def test_two_other_signals_are_as_one(tmp_path, first, second, where):
    """A closing terminal hangs up twice, a service manager terminates and hangs up: what was trained is saved."""
    done = processes.run_python(SIGNALLED, tmp_path, first, second, where)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert int(done.stdout.splitlines()[-1]) in {getattr(signal, first), getattr(signal, second)}
    assert checkpoints(tmp_path) == ["checkpoint-000004", "checkpoint-000006"]


@pytest.mark.no_arrays
@posix
@pytest.mark.parametrize(("first", "stopped_by"), [("ignored", "None"), ("own", str(int(signal.SIGTERM)))])
def test_a_signal_that_was_ignored_stays_ignored(tmp_path, first, stopped_by):
    done = processes.run_python(SIGNALLED, tmp_path, first, "none", "step")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == stopped_by


@posix
def test_in_a_notebook_a_second_ctrl_c_is_an_exception(tmp_path, monkeypatch):
    """The kernel must live."""
    monkeypatch.setattr(module, "_in_notebook", lambda: True)
    run = tiny.pretraining(tmp_path)

    def twice():
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
            sum(range(1000))

    handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    before_step(run, 6, twice)
    with pytest.raises(KeyboardInterrupt):
        quietly(run)
    assert [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)] == handlers
    assert checkpoints(tmp_path) == ["checkpoint-000004"]


@posix
def test_a_stop_before_the_first_step_says_that_nothing_is_saved(tmp_path):
    run = tiny.pretraining(tmp_path)
    clear = run.folder.clear
    true = signal.signal
    sent = []

    def install(number, handler):
        before = true(number, handler)
        if number == signal.SIGTERM and not sent:  # when all handlers but one are there
            sent.append(number)
            os.kill(os.getpid(), signal.SIGTERM)
        return before

    run.folder.clear = lambda: (clear(), setattr(signal, "signal", install))
    try:
        lines = quietly(run)
    finally:
        signal.signal = true
    assert lines == ["stopped before the first step: there is nothing to save"]
    assert checkpoints(tmp_path) == []
    assert run.stopped_by == signal.SIGTERM


def test_a_run_in_another_thread(tmp_path):
    """Signals reach the main thread only; elsewhere, as in some notebooks, a run goes through."""
    run = tiny.pretraining(tmp_path)
    thread = threading.Thread(target=quietly, args=(run,))
    thread.start()
    thread.join()
    assert latest_checkpoint(tmp_path).name == "checkpoint-000010"
