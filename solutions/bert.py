"""BERT from nothing, in one file: an engine that differentiates, BERT on it, its training. It needs NumPy alone.

    python solutions/bert.py some.txt [STEPS]

trains on your text, then guesses hidden words. Read it from top to bottom; the comments name the chapters that derive
each part. Shapes: B texts of L tokens, h heads of d_k = d_model / h numbers, V pieces in the vocabulary.
"""

import math, re, sys, time
from collections import Counter

import numpy as np

# --- An engine: chapters 1 and 2 -------------------------------------------------------------------------
class Tensor:
    """An array of float32 that remembers the operation that made it, and what it was made from."""
    made = 0  # counts tensors, so that each has a higher number than its parents

    def __init__(self, data, requires_grad=False):
        self.data, self.requires_grad = np.asarray(data, np.float32), requires_grad
        self.grad, self.parents, self.rule = None, (), None
        Tensor.made += 1
        self.number = Tensor.made

    @staticmethod
    def from_op(y, parents, backward):
        """What an operation returns. backward: from the gradient for y to one gradient for each parent."""
        output = Tensor(y, any(parent.requires_grad for parent in parents))
        if output.requires_grad:
            output.parents, output.rule = parents, backward
        return output

    shape, dtype = property(lambda self: self.data.shape), property(lambda self: self.data.dtype)

    def __add__(self, other):
        other = as_tensor(other)
        return Tensor.from_op(self.data + other.data, (self, other), lambda dy: (dy, dy))

    def __mul__(self, other):
        a, b = self.data, as_tensor(other).data
        return Tensor.from_op(a * b, (self, as_tensor(other)), lambda dy: (dy * b, dy * a))

    def __pow__(self, n):
        return Tensor.from_op(self.data**n, (self,), lambda dy: (dy * n * self.data ** (n - 1),))

    def __matmul__(self, other):  # matrices, or stacks of them
        a, b = self.data, other.data
        return Tensor.from_op(a @ b, (self, other), lambda dy: (dy @ b.swapaxes(-1, -2), a.swapaxes(-1, -2) @ dy))

    def tanh(self):
        y = np.tanh(self.data)
        return Tensor.from_op(y, (self,), lambda dy: (dy * (1 - y * y),))

    def sum(self, axis=None, keepdims=False):
        y = self.data.sum(axis=axis, keepdims=True)
        kept, given = y.shape, self.shape
        y = y if keepdims else y.squeeze(axis)
        return Tensor.from_op(y, (self,), lambda dy: (np.broadcast_to(dy.reshape(kept), given),))

    def mean(self, axis=None, keepdims=False):
        y = self.sum(axis, keepdims)
        return y * (y.data.size / self.data.size)

    def reshape(self, *shape):
        return Tensor.from_op(self.data.reshape(shape), (self,), lambda dy: (dy.reshape(self.shape),))

    def transpose(self, i, j):
        return Tensor.from_op(self.data.swapaxes(i, j), (self,), lambda dy: (dy.swapaxes(i, j),))

    __sub__ = lambda self, other: self + as_tensor(other) * -1
    __truediv__ = lambda self, other: self * as_tensor(other) ** -1
    __radd__, __rmul__ = __add__, __mul__

def as_tensor(x): return x if isinstance(x, Tensor) else Tensor(x)

def unbroadcast(dy, shape):
    """The gradient for an array of this shape that was broadcast to dy's: the sum over its copies."""
    dy = dy.sum(axis=tuple(range(dy.ndim - len(shape))))  # over the axes that were put in front
    return dy.sum(axis=tuple(i for i, n in enumerate(shape) if n == 1), keepdims=True)

def backward(output):
    """Add the gradient of `output` for each leaf behind it to the leaf's .grad, and forget the graph."""
    gradients = {output: np.ones_like(output.data)}
    while gradients:
        tensor = max(gradients, key=lambda tensor: tensor.number)  # the newest: all that used it have been visited
        dy = gradients.pop(tensor)
        if tensor.rule is None:  # a leaf
            tensor.grad = dy if tensor.grad is None else tensor.grad + dy
            continue
        for parent, gradient in zip(tensor.parents, tensor.rule(dy)):
            if parent.requires_grad:
                gradient = gradient if gradient.shape == parent.shape else unbroadcast(gradient, parent.shape)
                gradients[parent] = gradients[parent] + gradient if parent in gradients else gradient
        tensor.parents, tensor.rule = (), None

def look_up(x, index):  # chapter 6
    def backward(dy):
        dx = np.zeros_like(x.data)
        np.add.at(dx, index, dy)  # a row that is looked up twice gets both gradients
        return (dx,)
    return Tensor.from_op(x.data[index], (x,), backward)

Tensor.backward, Tensor.__getitem__ = backward, look_up

# --- Four operations with derivatives of their own -------------------------------------------------------
def softmax(S):  # chapter 7
    powers = np.exp(S.data - S.data.max(axis=-1, keepdims=True))
    A = powers / powers.sum(axis=-1, keepdims=True)
    return Tensor.from_op(A, (S,), lambda dA: (A * (dA - (dA * A).sum(axis=-1, keepdims=True)),))

def erf(x):  # tanh of x times a polynomial of x², fitted to an error below 1e-7
    x, y = np.clip(x, -4, 4), 0.0
    for coefficient in (1.589603e-7, -5.985692e-6, 8.971259e-5, -6.257196e-4, -1.843837e-4, 0.10276548, 1.12837970):
        y = y * x * x + coefficient
    return np.tanh(x * y)

def gelu(H):  # chapter 10
    cdf = 0.5 * (1 + erf(H.data / math.sqrt(2)))  # Φ, the share of H that passes
    slope = cdf + H.data * np.exp(-H.data * H.data / 2) / math.sqrt(2 * math.pi)
    return Tensor.from_op(H.data * cdf, (H,), lambda dy: (dy * slope,))

def layer_norm(x, gain, bias, eps):  # chapter 11
    centred = x.data - x.data.mean(axis=-1, keepdims=True)
    size = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + eps)
    x_hat = centred / size  # (…, d_model), each row of mean 0 and variance 1
    def backward(dy):
        g = dy * gain.data
        share = x_hat * (g * x_hat).mean(axis=-1, keepdims=True)
        dx = (g - g.mean(axis=-1, keepdims=True) - share) / size
        return dx, unbroadcast(dy * x_hat, gain.shape), unbroadcast(dy, bias.shape)
    return Tensor.from_op(x_hat * gain.data + bias.data, (x, gain, bias), backward)

def cross_entropy(Y, true):  # chapter 13: logits (n, V), ids (n,) -> the mean of log Σ exp(y) - y[true]
    rows, y = np.arange(len(true)), Y.data - Y.data.max(axis=-1, keepdims=True)
    log_p = y - np.log(np.exp(y).sum(axis=-1, keepdims=True))  # (n, V)
    def backward(dy):
        dY = np.exp(log_p)
        dY[rows, true] -= 1
        return (dy * dY / len(true),)
    return Tensor.from_op(-log_p[rows, true].mean(), (Y,), backward)

# --- BERT: chapters 6 to 12 ------------------------------------------------------------------------------
def embed(input_ids, token_type_ids, W_T, W_S, W_P):
    return W_T[input_ids] + W_S[token_type_ids] + W_P[: input_ids.shape[1]]  # (B, L, d_model)

def padding_mask(attention_mask, dtype):  # (B, L) of 1 and 0 -> (B, 1, 1, L), to be added to the scores
    return Tensor(np.where(attention_mask == 0, np.finfo(dtype).min, 0).astype(dtype)[:, None, None])

def multi_head(X, weights, h, mask):
    B, L, d_model = X.shape
    def heads(name):
        projected = X @ weights[f"W_{name}"] + weights[f"b_{name}"]  # (B, L, d_model)
        return projected.reshape(B, L, h, d_model // h).transpose(1, 2)  # (B, h, L, d_k)
    S = heads("Q") @ heads("K").transpose(-1, -2) / math.sqrt(d_model // h) + mask  # (B, h, L, L)
    Z = softmax(S) @ heads("V")  # (B, h, L, d_k)
    return Z.transpose(1, 2).reshape(B, L, d_model) @ weights["W_O"] + weights["b_O"]  # (B, L, d_model)

def feed_forward(X, W_1, b_1, W_2, b_2):
    return gelu(X @ W_1 + b_1) @ W_2 + b_2

def add_norm(x, y, gain, bias, eps):
    return layer_norm(x + y, gain, bias, eps)

def pool(X, W, b):
    return (X[:, 0] @ W + b).tanh()  # (B, d_model)

def bert(batch, model):
    """The last hidden state (B, L, d_model) and the pooled vector (B, d_model) of a batch's texts."""
    X = embed(batch["input_ids"], batch["token_type_ids"], model["W_T"], model["W_S"], model["W_P"])
    X, mask = layer_norm(X, *model["norm"], model["eps"]), padding_mask(batch["attention_mask"], X.dtype)
    for layer in model["layers"]:
        Y = multi_head(X, layer["attention"], model["h"], mask)
        X = add_norm(X, Y, *layer["attention_norm"], model["eps"])
        X = add_norm(X, feed_forward(X, *layer["feed_forward"]), *layer["output_norm"], model["eps"])
    return X, pool(X, *model["pooler"])

def mlm_logits(X, model):  # chapter 13: vectors (n, d_model) -> scores (n, V), by the table that looks pieces up
    W, b, gain, bias, decoder_bias = model["transform"]
    return layer_norm(gelu(X @ W + b), gain, bias, model["eps"]) @ model["W_T"].transpose(0, 1) + decoder_bias

def losses(batch, model):
    """The mean loss of the chosen tokens, and that of the pairs (chapter 14), in nats."""
    X, pooled = bert(batch, model)
    chosen = batch["labels"] != -100  # (B, L)
    W, b = model["seq_relationship"]
    mlm = cross_entropy(mlm_logits(X[chosen], model), batch["labels"][chosen])
    return mlm, cross_entropy(pooled @ W + b, batch["next_sentence_label"])

def new_model(V, d=64, h=2, N=2, L_max=64, seed=0):
    """As BERT (chapter 3), which redraws what is far out: matrices normal with deviation 0.02, biases 0, gains 1."""
    rng = np.random.default_rng(seed)
    def new(*shape, mean=0.0, std=0.0):
        return Tensor(mean + std * rng.standard_normal(shape), requires_grad=True)
    def linear(n, m):
        return new(n, m, std=0.02), new(m)
    def norm():
        return new(d, mean=1.0), new(d)
    def layer():
        pairs = {name: linear(d, d) for name in "QKVO"}
        attention = {f"{kind}_{name}": p for name in pairs for kind, p in zip("Wb", pairs[name])}
        wide = (*linear(d, 4 * d), *linear(4 * d, d))
        return {"attention": attention, "attention_norm": norm(), "feed_forward": wide, "output_norm": norm()}
    tables = {name: new(n, d, std=0.02) for name, n in (("W_T", V), ("W_S", 2), ("W_P", L_max))}
    heads = {"transform": (*linear(d, d), *norm(), new(V)), "seq_relationship": linear(d, 2), "h": h, "eps": 1e-12}
    model = {**tables, "norm": norm(), "layers": [layer() for _ in range(N)], "pooler": linear(d, d), **heads}
    return model | {"t": 0, "means": [[0 * p.data, 0 * p.data] for p in parameters(model)]}  # what AdamW keeps

def parameters(part):
    """The tensors in a model, or in a part of one."""
    parts = part.values() if isinstance(part, dict) else part if isinstance(part, (list, tuple)) else ()
    return [part] if isinstance(part, Tensor) else [tensor for one in parts for tensor in parameters(one)]

# --- Text: chapters 5, 6, 13 and 14 ----------------------------------------------------------------------
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
PAD, UNK, CLS, SEP, MASK = range(5)

def vocabulary_of(text, most=4000):
    """Pieces and their ids: special tokens, every character, at the start of a word or inside, frequent words."""
    words = Counter(re.findall(r"\w+|[^\w\s]", text.lower()))
    characters = sorted(set("".join(words)))
    pieces = [*SPECIAL, *characters, *("##" + one for one in characters), *(w for w, _ in words.most_common(most))]
    return {piece: i for i, piece in enumerate(dict.fromkeys(pieces))}

def split_word(word, vocabulary):
    if len(word) > 100:
        return ["[UNK]"]
    pieces, start = [], 0
    while start < len(word):
        prefix = "##" if start else ""
        for end in range(len(word), start, -1):  # the longest piece first
            if prefix + word[start:end] in vocabulary:
                break
        else:
            return ["[UNK]"]
        pieces.append(prefix + word[start:end])
        start = end
    return pieces

def pieces_of(text, ids):
    words = re.findall(r"\[MASK\]|\w+|[^\w\s]", text)
    return [piece for word in words for piece in ([word] if word in ids else split_word(word.lower(), ids))]

def pack(first, second, length):
    """Two lists of pieces as one: [CLS] first [SEP] second [SEP] [PAD] …, token_type_ids, attention_mask."""
    room = length - 3
    first = first[: max(room - len(second), (room + (len(first) > len(second))) // 2)]
    second = second[: room - len(first)]
    pieces = ["[CLS]", *first, "[SEP]", *second, "[SEP]"]
    padding = [0] * (length - len(pieces))
    types = [0] * (len(first) + 2) + [1] * (len(second) + 1)
    return pieces + ["[PAD]"] * len(padding), types + padding, [1] * len(pieces) + padding

def batch_of(rows, ids):
    """What `bert` reads, from what `pack` returns for each of B texts."""
    pieces, types, mask = zip(*rows)
    read = np.array([[ids[piece] for piece in row] for row in pieces])  # (B, L)
    return {"input_ids": read, "token_type_ids": np.array(types), "attention_mask": np.array(mask)}

def mask_tokens(read, V, rng):
    """Choose 15 % of each text's tokens; 80 % of these become [MASK], 10 % any piece, 10 % stay."""
    free = (read != PAD) & (read != CLS) & (read != SEP)  # (B, L)
    room = np.maximum(1, np.rint(0.15 * (read != PAD).sum(axis=1, keepdims=True)))  # (B, 1)
    order = np.where(free, rng.random(read.shape), 2).argsort(axis=1).argsort(axis=1)
    chosen, fate = free & (order < room), rng.random(read.shape)  # (B, L), (B, L)
    shown = np.where(chosen & (fate < 0.8), MASK, read)
    shown = np.where(chosen & (fate >= 0.9), rng.integers(0, V, read.shape), shown)
    return shown, np.where(chosen, read, -100)

def make_pair(documents, number, start, middle, end, is_next, other, place):
    """Sentences start to middle of a document, then those that follow (label 0) or as many of another (label 1)."""
    source, place = (documents[number], middle) if is_next else (documents[other + (other >= number)], place)
    a, b = documents[number][start:middle], source[place : place + end - middle]
    return [token for sentence in a for token in sentence], [token for sentence in b for token in sentence], 1 - is_next

def draw_batch(documents, ids, rng, B=32, L=64):
    """B pairs of sentences, half of them neighbours, with tokens chosen to be guessed."""
    pairs = []
    for is_next in rng.integers(0, 2, B).tolist():
        number, other = rng.integers(len(documents)), rng.integers(len(documents) - 1)
        start, place = rng.integers(len(documents[0]) - 1, size=2)
        pairs.append(make_pair(documents, number, start, start + 1, start + 2, is_next, other, place))
    batch = batch_of([pack(a, b, L) for a, b, _ in pairs], ids)
    batch["input_ids"], batch["labels"] = mask_tokens(batch["input_ids"], len(ids), rng)
    return batch | {"next_sentence_label": np.array([label for *_, label in pairs])}

# --- Training: chapters 4 and 15 -------------------------------------------------------------------------
def adam_step(theta, g, m, v, t, lr, beta1, beta2, eps):
    m = beta1 * m + (1 - beta1) * g
    v = beta2 * v + (1 - beta2) * g**2
    m_hat, v_hat = m / (1 - beta1**t), v / (1 - beta2**t)
    return theta - lr * m_hat / (np.sqrt(v_hat) + eps), m, v

def clip_gradients(gradients, max_norm):
    norm = math.sqrt(sum(float((g**2).sum()) for g in gradients))
    scale = max_norm / norm if norm > max_norm else 1.0
    return [g * scale for g in gradients], norm

def train_step(batch, model, lr):
    """One step of AdamW on the sum of both losses, which it returns."""
    mlm, nsp = losses(batch, model)
    (mlm + nsp).backward()
    model["t"] += 1
    weights = parameters(model)
    gradients, _ = clip_gradients([p.grad for p in weights], 1.0)
    for p, g, means in zip(weights, gradients, model["means"]):
        kept = 1 - 0.01 * lr * (p.data.ndim > 1)  # weight decay, of matrices alone
        p.data, *means[:] = adam_step(kept * p.data, g, *means, model["t"], lr, 0.9, 0.999, 1e-6)
        p.grad = None
    return float(mlm.data), float(nsp.data)

def train(model, next_batch, steps, peak=2e-3):
    """The rate rises for a tenth of the steps, then falls to 0. Yields the two losses of each step that is left."""
    for t in range(model["t"], steps):
        yield train_step(next_batch(), model, peak * min(10 * t / steps, (steps - t) / (0.9 * steps)))

def fill(pieces, model, ids, n=4):
    """For each [MASK] among some pieces the n likeliest ones, with their probabilities."""
    batch, names = batch_of([pack(pieces, [], len(pieces) + 3)], ids), list(ids)
    X, _ = bert(batch, model)
    P = softmax(mlm_logits(X[batch["input_ids"] == MASK], model)).data  # (gaps, V)
    return [[(names[i], float(p[i])) for i in p.argsort()[: -n - 1 : -1]] for p in P]

def main(path, steps=2000):
    try:
        text = open(path, encoding="utf-8").read()
    except (OSError, UnicodeDecodeError) as error:
        sys.exit(f"{path} cannot be read as text: {error}")
    ids = vocabulary_of(text)
    sentences = [pieces_of(one, ids) for one in re.split(r"(?<=[.!?])\s+|\n\s*\n", text) if one.strip()]
    if len(sentences) < 8:
        sys.exit(f"{path} has {len(sentences)} sentences; the model needs pairs of them, so give it at least 8")
    size = min(20, len(sentences) // 2)  # so many in a row are a document
    documents = [sentences[i : i + size] for i in range(0, len(sentences) - size + 1, size)]
    model, rng, start = new_model(len(ids)), np.random.default_rng(0), time.time()
    print(f"{len(sentences)} sentences, {len(ids)} pieces, {sum(p.data.size for p in parameters(model))} parameters")
    try:
        for step, (mlm, nsp) in enumerate(train(model, lambda: draw_batch(documents, ids, rng), steps), 1):
            left = (time.time() - start) / step * (steps - step)
            print(f"\rstep {step}: words {mlm:.2f} nats, pairs {nsp:.2f}, {left:.0f} s left  ", end="", flush=True)
    except KeyboardInterrupt:
        print("\nstopped", end="")
    for sentence in sorted((one[:61] for one in sentences), key=len)[len(sentences) // 2 :][:6]:  # `pack` adds three
        gap = len(sentence) // 2
        shown = [*sentence[:gap], "[MASK]", *sentence[gap + 1 :]]
        guesses = ", ".join(f"{piece} {p:.0%}" for piece, p in fill(shown, model, ids)[0])
        print(f"\n{' '.join(shown).replace(' ##', '')}\n    it was {sentence[gap]}; the model: {guesses}")

if __name__ == "__main__":
    sys.stdout.reconfigure(errors="replace")  # not every output holds every sign
    sys.exit(main(sys.argv[1], *map(int, sys.argv[2:])) if len(sys.argv) in (2, 3) else __doc__)
