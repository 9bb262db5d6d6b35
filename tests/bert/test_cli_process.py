"""The command line as a process: its streams, its signals, its exit status."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from commands import pretrain

import processes
from minigrad.training.folders import latest_checkpoint

pytestmark = pytest.mark.no_arrays  # in this process

MODULE = "import runpy, sys; sys.argv[0] = 'minigrad'; runpy.run_module('minigrad.bert', run_name='__main__')"
BERT = f"{shlex.quote(sys.executable)} -m minigrad.bert"
TRAIN = shlex.join([*pretrain(Path("text.txt"), Path("run")), "--set", "max_position_embeddings=128"])
posix = pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell, signals, terminals")


def shell(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run a line of bash; `$B` is the command line, `$T` a run of `text.txt`, all but the output."""
    return subprocess.run(
        ["bash", "-c", command.replace("$T", f"$B {TRAIN}").replace("$B", BERT)],
        cwd=folder,
        env={**processes.environment(), **environment},
        capture_output=True,
        timeout=60,
    )


def test_as_a_process(run):
    done = processes.run_python(MODULE, "next-sentence", "--model", run / "run", "Bal.", "Bam.")
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.startswith("IsNext ")


def test_as_a_process_that_fails(tmp_path):
    done = processes.run_python(MODULE, "fill-mask", "--model", tmp_path / "nowhere", "[MASK]")
    assert done.returncode == 1
    assert done.stdout == ""
    assert re.fullmatch(r"error: there is no folder .*nowhere; train one with: .*\n", done.stderr)


needs_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")


@posix
@pytest.mark.parametrize(
    "streams",
    [
        "| head -2",
        "2>&1 >/dev/null | head -1",
        pytest.param("2>/dev/full", marks=needs_full),
        pytest.param(">/dev/full 2>&1", marks=needs_full),
        "2>&-",
        "<&- >&- 2>&-",
    ],
)
def test_training_does_not_hang_on_its_messages(corpus, tmp_path, streams):
    done = shell(f"$T {streams}; exit ${{PIPESTATUS[0]}}", tmp_path)
    assert done.returncode == 0, done.stderr
    assert b"Traceback" not in done.stdout + done.stderr
    assert b"Exception ignored" not in done.stdout + done.stderr
    assert latest_checkpoint(tmp_path / "run").name == "checkpoint-000006"
    assert (tmp_path / "run" / "metrics.csv").read_text().count("\n") == 4
    assert (tmp_path / "run" / "metrics.csv").read_text().startswith("step,")


@posix
@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_streams_that_are_not_utf_8(corpus, tmp_path, encoding):
    done = shell("$T", tmp_path, PYTHONIOENCODING=encoding)
    assert done.returncode == 0, done.stderr
    assert b"reading text.txt \\u2026\n" in done.stdout


@posix
def test_bytes_that_are_no_text_are_spelled_out(run, tmp_path):
    """In an argument Python makes each of them half of a surrogate pair, which no encoding can write."""
    done = shell(rf"$B fill-mask --model {shlex.quote(str(run / 'run'))} $'\xff [MASK]'", tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")
    assert done.stdout.startswith(b"\\udcff [MASK]\n")


@posix
@pytest.mark.parametrize(("command", "reader"), [("info base", "head -1"), ("--help", "true")])
def test_a_reader_that_has_seen_enough(tmp_path, command, reader):
    done = shell(f"set -o pipefail; $B {command} | {reader}", tmp_path)
    assert (done.returncode, done.stderr) == (0, b"")


@posix
@needs_full
def test_output_that_cannot_be_written_is_an_error(tmp_path):
    done = shell("$B info base >/dev/full", tmp_path)
    assert done.returncode == 1
    assert re.fullmatch(rb"error: .*No space left on device\n", done.stderr)


@posix
@pytest.mark.parametrize("name", ["INT", "TERM"])
def test_a_stopped_run_does_not_let_the_next_command_go_on(corpus, tmp_path, name):
    script = f"""
    $T --steps 1000000 --log-every 100000 --eval-every 100000 --save-every 100000 >out 2>err &
    pid=$!
    (sleep 50; kill -KILL $pid) >/dev/null 2>&1 &  # a run that does not heed the signal would outlive the test
    until [ -s out ] && grep -q 'unigram entropy' out; do sleep 0.05; done
    sleep 0.3
    kill -{name} $pid
    wait $pid
    status=$?
    kill -- -$! 2>/dev/null
    exit $status
    """
    done = shell(f"set -m\n{script}", tmp_path)  # -m: a job of its own, which does not ignore SIGINT
    assert done.returncode == 128 + getattr(signal, f"SIG{name}")
    (line,) = (tmp_path / "err").read_text().splitlines()
    step = re.fullmatch(r"stopped at step (\d+) of 1000000 and saved; go on with --resume", line)[1]
    assert latest_checkpoint(tmp_path / "run").name == f"checkpoint-{int(step):06d}"
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == [
        ".lock",
        latest_checkpoint(tmp_path / "run").name,
    ]


@posix
def test_ctrl_c_before_training_is_no_traceback(tmp_path):
    """While the text is read, here from a pipe that nobody writes to."""
    os.mkfifo(tmp_path / "never")
    script = f"""
import os, signal, sys, threading, runpy
import minigrad.text.corpus as corpus
def read(source, progress):
    os.kill(os.getpid(), signal.SIGINT)
    signal.pause()
corpus.read_corpus = read
sys.argv = ["minigrad", *{pretrain(Path("text.txt"), tmp_path / "run")!r}]
runpy.run_module("minigrad.bert", run_name="__main__")
"""
    done = processes.run_python(script)
    assert done.returncode == 130
    assert done.stderr == "interrupted\n"
    assert not (tmp_path / "run").exists()


@posix
@pytest.mark.parametrize("module", ["minigrad.bert", "minigrad.seq2seq"])
@pytest.mark.parametrize("imported", ["threadpoolctl", "safetensors"])
def test_a_ctrl_c_while_modules_are_imported_is_no_traceback(tmp_path, module, imported):
    """The first thing that a package imports, and one of the last."""
    (tmp_path / f"{imported}.py").write_text(
        "import os, signal, time\nos.kill(os.getpid(), signal.SIGINT)\ntime.sleep(9)"
    )
    found = dict(processes.environment())
    found["PYTHONPATH"] = os.pathsep.join([str(tmp_path), *filter(None, [found.get("PYTHONPATH")])])
    done = subprocess.run(
        [sys.executable, "-m", module, "--help"], env=found, capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


@posix
@pytest.mark.parametrize("options", ["--learning-rate 1e30 --warmup-steps 0", "--weight-decay 1e29"])
def test_numbers_that_overflow_are_one_clear_line(corpus, tmp_path, options):
    done = shell(f"$T --steps 40 {options}", tmp_path, PYTHONWARNINGS="default")
    assert done.returncode == 1
    *before, last = done.stderr.decode().splitlines()
    assert re.match(r"error: the (loss|norm of the gradients) is (nan|inf) in step \d+; ", last)
    assert all(re.match(r"step \d+", line) for line in before)


TERMINAL = """
import os, pty, struct, sys, fcntl, termios
rows, columns = 24, int(sys.argv[1])
pid, terminal = pty.fork()
if pid == 0:
    os.execv(sys.executable, [sys.executable, "-m", "minigrad.bert", *sys.argv[2:]])
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
try:
    while text := os.read(terminal, 4096):
        sys.stdout.buffer.write(text)
except OSError:
    pass  # how a terminal ends
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
"""


@posix
@pytest.mark.parametrize(("columns", "bar"), [(0, False), (100, True)])
def test_terminals_with_and_without_columns(corpus, tmp_path, columns, bar):
    done = processes.run_python(TERMINAL, columns, *pretrain(corpus, tmp_path / "run"))
    assert done.returncode == 0, done.stdout
    assert "step 3: held out MLM loss" in done.stdout
    assert ("%|" in done.stdout) is bar
    assert ("step 6/6  MLM " in done.stdout) is not bar
