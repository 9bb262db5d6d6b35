"""From token ids to the encoder's input: token + segment + position, LayerNorm, dropout."""

from __future__ import annotations

from minigrad import nn
from minigrad.bert.config import BertConfig
from minigrad.tensor import Array, Tensor


class BertEmbeddings(nn.Module):
    """The sum of three tables' rows, normalised (Devlin et al. 2019, section 3 and figure 2).

    The LayerNorm and the dropout are in the released code only (`embedding_postprocessor`).
    """

    def __init__(self, config: BertConfig) -> None:
        std = config.initializer_range
        self.word_embeddings = nn.Embedding(config.vocab_size, config.hidden_size, std)
        self.position_embeddings = nn.Embedding(config.max_position_embeddings, config.hidden_size, std)
        self.token_type_embeddings = nn.Embedding(config.type_vocab_size, config.hidden_size, std)
        self.LayerNorm = nn.LayerNorm(config.hidden_size, config.layer_norm_eps)
        self.dropout = nn.Dropout(config.hidden_dropout_prob)

    def forward(self, input_ids: Array, token_type_ids: Array) -> Tensor:
        """input_ids, token_type_ids (B, T) of integers -> (B, T, H).

        Raises ValueError for other shapes, and for more tokens than there are positions.
        """
        places = len(self.position_embeddings.weight)
        if input_ids.ndim != 2 or token_type_ids.shape != input_ids.shape:
            raise ValueError(
                "embeddings: expected input_ids and token_type_ids of one shape (B, T), "
                f"got {input_ids.shape} and {token_type_ids.shape}"
            )
        if input_ids.shape[1] > places:
            raise ValueError(f"embeddings: {input_ids.shape[1]} tokens are more than the {places} positions")
        positions = self.position_embeddings.weight[: input_ids.shape[1]]  # (T, H)
        x = self.word_embeddings(input_ids) + self.token_type_embeddings(token_type_ids) + positions
        return self.dropout(self.LayerNorm(x))
