"""What a computation's graph says of it: its nodes in order, and the work in its matrix products."""

from __future__ import annotations

import math

from minigrad.graph import Node
from minigrad.tensor import Tensor


def nodes_before(output: Tensor) -> list[Node]:
    """The nodes of the graph that led to `output`, from the oldest to the newest: a node comes after its parents.

    Raises ValueError for a leaf, to which no operation led.
    """
    if output.node is None:
        raise ValueError("the output is a leaf: no operation led to it")
    nodes, waiting = {output.node}, [output.node]
    while waiting:
        for parent in waiting.pop().parents or ():
            if isinstance(parent, Node) and parent not in nodes:
                nodes.add(parent)
                waiting.append(parent)
    return sorted(nodes, key=lambda node: node.number)


def product_flops(output: Tensor) -> int:
    """The FLOPs in the matrix products that led to `output`: those of linear layers and of attention."""
    total = 0
    for node in nodes_before(output):
        if node.op == "linear":
            _, matrix, *_ = node.parents or ()  # (in, out)
            assert isinstance(matrix, Node | Tensor)
            total += 2 * math.prod(node.shape) * matrix.shape[0]
        elif node.op == "scaled_dot_product_attention":
            total += 4 * math.prod(node.shape) * node.shape[-2]  # (B, h, L, d_k)
    return total
