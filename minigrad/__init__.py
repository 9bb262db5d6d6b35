"""minigrad: a small reverse-mode autograd tensor library, with NumPy and CuPy underneath.

>>> from minigrad import Tensor
>>> x = Tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
array([2., 4., 6.], dtype=float32)
"""

import os
import signal
import sys

# Until the command has a handler of its own, a Ctrl-C ends it without a traceback
if (
    sys.argv[:1] == ["-m"]
    and {"minigrad.bert", "minigrad.seq2seq"} & set(sys.orig_argv)
    and signal.getsignal(signal.SIGINT) is signal.default_int_handler
):
    signal.signal(signal.SIGINT, signal.SIG_DFL)

# OpenBLAS reads this when NumPy is first imported: its threads then wait for work 2^20 cycles, not 2^26, before
# they leave the cores to the threads of minigrad.backend.threads.
os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")

from minigrad import nn, ops, optim, profiler, random
from minigrad.backend import default_matmul_precision, use
from minigrad.random import manual_seed
from minigrad.tensor import Tensor, is_grad_enabled, no_grad
from minigrad.testing import check_grad

__all__ = [
    "Tensor",
    "check_grad",
    "default_matmul_precision",
    "is_grad_enabled",
    "manual_seed",
    "nn",
    "no_grad",
    "ops",
    "optim",
    "profiler",
    "random",
    "use",
]
