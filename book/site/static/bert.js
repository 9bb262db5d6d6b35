// BERT's forward pass, for the page "Ask the model": every step as the course derives it, in plain loops.
//
// A model's script (book/site/ext/live_model.py writes it) puts into `courseModels` its name, its config in Hugging
// Face's names, its tokenizer, the shapes of its tensors in their order, and their float16 numbers in base64.
window.CourseBert = (function () {
  // Every float16 as a float32: 1 bit of sign, 5 of exponent, 10 of fraction.
  function decode(text) {
    const scale = Array.from({ length: 32 }, (_, exponent) => 2 ** (Math.max(exponent, 1) - 25));
    const bytes = atob(text);
    const values = new Float32Array(bytes.length / 2);
    for (let i = 0; i < values.length; i++) {
      const half = bytes.charCodeAt(2 * i) + 256 * bytes.charCodeAt(2 * i + 1);
      const exponent = (half >> 10) & 31;
      const size = ((half & 1023) + (exponent ? 1024 : 0)) * scale[exponent];
      values[i] = half & 32768 ? -size : size;
    }
    return values;
  }

  // erf(x) = 2/√π e^(-x²) (x + 2x³/3 + 4x⁵/15 + …): all terms have one sign, so nothing cancels. Beyond 6 it is ±1 to
  // 17 digits.
  function erf(x) {
    if (Math.abs(x) > 6) return Math.sign(x);
    let term = x;
    let sum = x;
    for (let n = 3; Math.abs(term) > 1e-12 * Math.abs(sum); n += 2) {
      term *= (2 * x * x) / n;
      sum += term;
    }
    return (2 / Math.sqrt(Math.PI)) * Math.exp(-x * x) * sum;
  }

  const gelu = (x) => 0.5 * x * (1 + erf(x / Math.SQRT2));

  // x (T, inner), weight (outer, inner) as Hugging Face stores it, bias (outer) -> (T, outer). Four rows of x at a time:
  // a weight is read once for them, and a processor adds their sums side by side.
  function linear(x, weight, bias) {
    const outer = bias.length;
    const inner = weight.length / outer;
    const rows = x.length / inner;
    const y = new Float32Array(rows * outer);
    for (let o = 0; o < outer; o++) {
      const first = o * inner;
      let t = 0;
      for (; t + 3 < rows; t += 4) {
        let p = t * inner, q = p + inner, r = q + inner, s = r + inner;
        let a = bias[o], b = a, c = a, d = a;
        for (let i = first; i < first + inner; i++) {
          const w = weight[i];
          a += w * x[p++];
          b += w * x[q++];
          c += w * x[r++];
          d += w * x[s++];
        }
        y[t * outer + o] = a;
        y[(t + 1) * outer + o] = b;
        y[(t + 2) * outer + o] = c;
        y[(t + 3) * outer + o] = d;
      }
      for (; t < rows; t++) {
        let p = t * inner;
        let sum = bias[o];
        for (let i = first; i < first + inner; i++) sum += weight[i] * x[p++];
        y[t * outer + o] = sum;
      }
    }
    return y;
  }

  // Each row of x (T, H) to mean 0 and variance 1, times weight, plus bias; in place.
  function layerNorm(x, weight, bias, eps) {
    const size = weight.length;
    for (let start = 0; start < x.length; start += size) {
      let mean = 0, variance = 0;
      for (let i = 0; i < size; i++) mean += x[start + i] / size;
      for (let i = 0; i < size; i++) variance += (x[start + i] - mean) ** 2 / size;
      const scale = 1 / Math.sqrt(variance + eps);
      for (let i = 0; i < size; i++) x[start + i] = (x[start + i] - mean) * scale * weight[i] + bias[i];
    }
    return x;
  }

  function softmax(scores) {
    const most = scores.reduce((a, b) => Math.max(a, b), -Infinity);
    const shares = Float64Array.from(scores, (score) => Math.exp(score - most));
    const sum = shares.reduce((a, b) => a + b, 0);
    return shares.map((share) => share / sum);
  }

  // One head: q, k, v (T, H) of all heads, of which this one has the columns from `first` on. Writes its rows into
  // mixed (T, H) and returns its weights (T, T).
  function attend(q, k, v, mixed, size, first, width) {
    const length = q.length / size;
    const weights = new Float32Array(length * length);
    for (let i = 0; i < length; i++) {
      const scores = new Float64Array(length);
      for (let j = 0; j < length; j++) {
        let score = 0;
        for (let c = first; c < first + width; c++) score += q[i * size + c] * k[j * size + c];
        scores[j] = score / Math.sqrt(width);
      }
      const row = softmax(scores);
      weights.set(row, i * length);
      for (let j = 0; j < length; j++) {
        for (let c = first; c < first + width; c++) mixed[i * size + c] += row[j] * v[j * size + c];
      }
    }
    return weights;
  }

  const sum = (x, y) => x.map((value, i) => value + y[i]);

  return class CourseBert {
    constructor(stored) {
      this.config = stored.config;
      this.tokenizer = stored.tokenizer;
      const values = decode(stored.weights);
      this.tensors = {};
      let start = 0;
      for (const [name, shape] of stored.tensors) {
        const end = start + shape.reduce((a, b) => a * b, 1);
        this.tensors[name] = values.subarray(start, end);
        start = end;
      }
      if (start !== values.length) throw new Error(`the tensors need ${start} numbers, there are ${values.length}`);
    }

    // A text as BERT reads it: {pieces: [{piece, id, continues}], dropped: how many did not fit}.
    read(text) {
      const special = (name) => this.tokenizer.tokenize(name)[0];
      const found = this.tokenizer.tokenize(CourseBert.withGaps(text));
      const kept = found.slice(0, this.config.max_position_embeddings - 2);
      return { pieces: [special("[CLS]"), ...kept, special("[SEP]")], dropped: found.length - kept.length };
    }

    // The words of a text that are not in the vocabulary, each once: BERT reads [UNK] for them.
    unknown(text) {
      const parts = CourseBert.withGaps(text).split(/\[(?:PAD|UNK|CLS|SEP|MASK)\]/);
      const words = new Set(parts.flatMap((part) => this.tokenizer.words(part)));
      return [...words].filter((word) => this.tokenizer.cut(word)[0].piece === "[UNK]");
    }

    // A gap is [MASK], or underscores that touch no letter and no digit: file_name has none.
    static withGaps(text) {
      return text.replace(/\[mask\]/gi, "[MASK]").replace(/(^|[^\p{L}\p{N}_])_+(?![\p{L}\p{N}_])/gu, "$1[MASK]");
    }

    // x (T, H), and the names of a linear layer or a LayerNorm.
    linear(x, name) {
      return linear(x, this.tensors[`${name}.weight`], this.tensors[`${name}.bias`]);
    }

    norm(x, name) {
      return layerNorm(x, this.tensors[`${name}.weight`], this.tensors[`${name}.bias`], this.config.layer_norm_eps);
    }

    // The sum of three rows for each token (T, H): its piece, its position, its segment. A [SEP] ends segment 0.
    embed(ids) {
      const { hidden_size: size, type_vocab_size: kinds } = this.config;
      const end = ids.indexOf(this.tokenizer.tokenize("[SEP]")[0].id);
      const [words, places, segments] = ["word", "position", "token_type"].map(
        (kind) => this.tensors[`bert.embeddings.${kind}_embeddings.weight`]
      );
      const x = new Float32Array(ids.length * size);
      ids.forEach((id, t) => {
        const kind = t > end && kinds > 1 ? size : 0; // where this segment's row begins
        for (let i = 0; i < size; i++) x[t * size + i] = words[id * size + i] + places[t * size + i] + segments[kind + i];
      });
      return this.norm(x, "bert.embeddings.LayerNorm");
    }

    // ids (T), places: the positions whose scores are wanted. Gives {scores: a Float32Array (V) for each place,
    // attention: for each layer, for each head, weights (T, T)}.
    forward(ids, places) {
      const { hidden_size: size, num_hidden_layers: layers, num_attention_heads: heads } = this.config;
      const attention = [];
      let x = this.embed(ids);
      for (let number = 0; number < layers; number++) {
        const layer = `bert.encoder.layer.${number}`;
        const [q, k, v] = ["query", "key", "value"].map((part) => this.linear(x, `${layer}.attention.self.${part}`));
        const mixed = new Float32Array(x.length);
        const width = size / heads;
        attention.push(Array.from({ length: heads }, (_, head) => attend(q, k, v, mixed, size, head * width, width)));
        x = this.norm(sum(x, this.linear(mixed, `${layer}.attention.output.dense`)), `${layer}.attention.output.LayerNorm`);
        const inner = this.linear(x, `${layer}.intermediate.dense`).map(gelu);
        x = this.norm(sum(x, this.linear(inner, `${layer}.output.dense`)), `${layer}.output.LayerNorm`);
      }
      const chosen = new Float32Array(places.length * size);
      places.forEach((place, n) => chosen.set(x.subarray(place * size, (place + 1) * size), n * size));
      const head = this.linear(chosen, "cls.predictions.transform.dense").map(gelu);
      this.norm(head, "cls.predictions.transform.LayerNorm");
      const words = this.tensors["bert.embeddings.word_embeddings.weight"]; // the decoder is the table of the pieces
      const all = linear(head, words, this.tensors["cls.predictions.bias"]);
      const scores = places.map((_, n) => all.subarray((n * words.length) / size, ((n + 1) * words.length) / size));
      return { scores, attention };
    }

    static softmax = softmax;
    static erf = erf;
  };
})();
