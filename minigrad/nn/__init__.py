"""Modules: parameters with a name, the layers that BERT is made of, and recurrent ones."""

from __future__ import annotations

from minigrad.nn.initial import parameter_shapes, truncated_normal
from minigrad.nn.layers import Dropout, Embedding, LayerNorm, Linear
from minigrad.nn.module import Module, ModuleList, Parameter, Sequential, evaluating
from minigrad.nn.recurrent import GRU, LSTM, RNN

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "Dropout",
    "Embedding",
    "LayerNorm",
    "Linear",
    "Module",
    "ModuleList",
    "Parameter",
    "Sequential",
    "evaluating",
    "parameter_shapes",
    "truncated_normal",
]
