"""What the commonest errors of array code say, in other words than NumPy's."""

from __future__ import annotations

import re

from bert_course.check.differences import TO_FLOAT64

LONGEST = 1000  # characters of an error's text: patterns are slow on millions

# A pattern of the error's text, and what to tell; (?P<…>) goes into the sentence.
SAYINGS = [
    # Of Tensors: the habits of NumPy, each with the line to write.
    (r"np\.tanh of a Tensor", "Write x.tanh(): a NumPy function would take the numbers out of the Tensor."),
    (r"np\.sqrt of a Tensor", "Write x ** 0.5: a NumPy function would take the numbers out of the Tensor."),
    (
        r"np\.(square|power) of a Tensor",
        "Write x ** 2: a NumPy function would take the numbers out of the Tensor.",
    ),
    (
        r"np\.(?P<name>sum|mean) of a Tensor",
        "Write x.{name}(axis=-1, keepdims=True): a NumPy function would take the numbers out of the Tensor.",
    ),
    (
        r"np\.(matmul|dot|inner|einsum|vdot) of a Tensor",
        "Write A @ B, with A.transpose(-1, -2) where a matrix has to be transposed: a NumPy function would take the "
        "numbers out of the Tensor.",
    ),
    (
        r"np\.(transpose|swapaxes|moveaxis) of a Tensor|transpose swaps two axes|T is for up to two axes",
        "A Tensor's transpose exchanges two axes: x.transpose(1, 2), or x.transpose(-1, -2) for the last two.",
    ),
    (r"np\.reshape of a Tensor", "Write x.reshape(…)."),
    (r"np\.(zeros|ones)_like of a Tensor", "Write 0 * x for zeros of the shape of x."),
    (
        r"np\.(exp|max|amax|maximum) of a Tensor",
        "NumPy's functions take the numbers out of a Tensor. ops.softmax(S) is the softmax over the last axis. An operation "
        "of your own computes with NumPy on .data, and returns Tensor.from_op(y, parents, backward).",
    ),
    (
        r"np\.\w+ of a Tensor|does not become an array by itself|Tensor and an array do not mix|expected a Tensor",
        "Arrays and Tensors do not mix, and NumPy's functions take the numbers out of a Tensor, where the gradient ends. "
        "Tensors have + - * / @ **, [ids], reshape, transpose(i, j), sum, mean and tanh.",
    ),
    (
        r"has no attribute '(requires_grad|node)'",
        "The parents of Tensor.from_op are the Tensors that came in, not their arrays.",
    ),
    (
        r"'Tensor' object has no attribute",
        "A Tensor has + - * / @ **, [ids], reshape, transpose(i, j), sum, mean and tanh; an operation of your own computes "
        "with NumPy on .data.",
    ),
    (
        r"backward returned \d+ gradients",
        "backward returns a tuple with one gradient for each parent, also where there is one: (dx,).",
    ),
    (
        r"has shape (?P<shape>\(.*?\)) and dtype float64, its input has (?P=shape) and float32",
        f"The gradient has the right shape, and is float64. {TO_FLOAT64}",
    ),
    (
        r"the gradient of input \d+ has shape .*, its input has",
        "A gradient has the shape of what it belongs to: sum over every axis along which the parent was repeated.",
    ),
    (
        r"the shapes (?P<one>\(.*?\)) and (?P<other>\(.*?\)) do not broadcast",
        "Shapes are lined up from the right: there {one} and {other} do not fit. An axis that was summed away is missing "
        "(keepdims=True keeps it), or a matrix is not transposed.",
    ),
    (r"unexpected keyword argument '(keepdim|dim)'", "Here they are called axis and keepdims, as in NumPy."),
    (
        r"can't multiply sequence|can only concatenate|unsupported operand type\(s\).*(tuple|list)",
        "A list or a tuple stands where a number or an array is meant. Does a function that you call return several things?",
    ),
    # Of arrays.
    (
        r"remapped shapes|dimension mismatch|einstein sum|subscript(?!able)",
        "The letters of an einsum stand for axes: one for each, the same length wherever one comes twice.",
    ),
    (
        r"operands could not be broadcast together with .*?(?P<one>\(.*?\)).*?(?P<other>\(.*?\))",
        "NumPy lines shapes up from the right: there {one} and {other} do not fit. An axis that was summed away is missing "
        "(keepdims=True or [:, None] keep it), or a matrix is not transposed.",
    ),
    (
        r"size (?P<one>\d+) is different from (?P<other>\d+)|\(dim \d+\) != .*\(dim \d+\)",
        "In a matrix product the last axis of the left factor meets the last but one of the right: their lengths differ. "
        "Write both shapes down: one of them has to be transposed, or the factors are in the wrong order.",
    ),
    (
        r"too many indices|axis -?\d+ is out of bounds|axes don't match|axis1: |axis2: ",
        "This input has fewer axes, or others, than the line counts on. Axes counted from the end, axis=-1 or x[..., i], "
        "are there whatever comes before them.",
    ),
    (
        r"truth value of an array",
        "An `if`, and, or, not, max and min want one True or False, and an array has many. np.where, np.maximum and & go "
        "entry by entry.",
    ),
    (
        r"cannot reshape array of size (?P<one>\d+) into shape (?P<other>\(.*\))",
        "A reshape keeps all entries: {one} do not fill {other}.",
    ),
    (
        r"Cannot cast ufunc",
        "An operator in place keeps the dtype of the array on its left, which cannot hold the result.",
    ),
    (
        r"NoneType",
        "Something there is None: a function that works in place returns None, and so does one without `return`.",
    ),
    (
        r"read-only",
        "That array cannot be written to: broadcasting shows one row of memory in many places. Write into an array of your "
        "own.",
    ),
    (
        r"only (length-1|0-dimensional|size-1)",
        "math's functions, float() and int() take one number; np's functions take an array, entry by entry.",
    ),
    (
        r"math domain error|expected a positive input",
        "A logarithm of 0 or less, and a root of less than 0, do not exist. Where a count is 0, its term of a sum, "
        "0 · log 0, counts as 0.",
    ),
    (
        r"math range error|Numerical result out of range|too large to convert",
        "That number is beyond the largest float, some 1e308. Subtract before an exponential is taken, or add logarithms "
        "where numbers are multiplied.",
    ),
    (r"^module .* has no attribute", "That module has no function of this name."),
    (r"(division|modulo) by zero", "You divide by a number that is 0 for this input."),
    (r"unhashable", "A set, and the keys of a dict, cannot hold arrays or lists: those can change."),
    (r"has no attribute", "That value is of another type than the line takes it for."),
    (r"positional argument|keyword argument", "The function has other parameters than it was called with."),
    (r"is not defined", "That name has no value here: is it misspelt, or made in another cell?"),
    (
        r"where it is not associated|before assignment",
        "That name gets its value in a branch that is not taken here.",
    ),
    (
        r"empty sequence|empty iterable|zero-size array",
        "Nothing is left there to take the smallest or the largest of: for this input a range, or a condition, lets "
        "nothing through.",
    ),
    (r"recursion", "The function calls itself and does not come to an end."),
    (r"not callable", "Round brackets after it call it, and it is no function: square ones take an entry."),
    (r"Unable to allocate|array is too big", "That array would be larger than the memory."),
    (
        r"out of range|out of bounds for axis",
        "That place is beyond the end: a loop that goes one too far, or over another axis.",
    ),
]


def text_of(error: BaseException) -> str:
    """What an error says, as far as anybody reads; nothing where it fails when it is asked."""
    try:
        return str(error)[:LONGEST]
    except KeyboardInterrupt:
        raise
    except BaseException:
        return ""


def explained(error: BaseException) -> str | None:
    """What an error says, in a sentence; None for one that is not in the list."""
    if isinstance(error, KeyError):
        return f"The dictionary has no key {text_of(error)}. Where += adds to it, begin with 0 for every key."
    for pattern, sentence in SAYINGS:
        if match := re.search(pattern, text_of(error)):
            return sentence.format(**match.groupdict(default="these"))
    return None
