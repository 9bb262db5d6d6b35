"""The CUDA kernels of the CuPy backend: what `cupy.py` compiles and launches.

What makes them fast is what they leave out. A GPU waits for its memory nearly all the time here, and an array
expression such as `y * (dy - (dy * y).sum(-1))` reads or writes main memory some nine times; as one kernel it
reads two arrays and writes one. Three shapes of work come up:

- each thread an entry: blocks of 256 threads in a row;
- each row of a matrix is summed or maximised: 32 threads (a warp) share a row and 8 rows a block, or 1,024
  threads share a long one. Neighbouring threads read neighbouring entries, which the memory delivers
  together; a row that is read again comes out of the cache;
- each column is summed: a block has 32 columns and 8 threads for each.

Every sum is added up in one order, whatever runs first, so results are the same bits each time: no atomics.
Sizes are `long long` and factors `double`, because that is how CuPy hands over Python's numbers.
"""

from __future__ import annotations

import numpy as np

OPTIONS = ("--std=c++17", "--maxrregcount=64")  # so many registers are there for each of 1,024 threads
TYPES = {np.dtype("float32"): "float", np.dtype("float64"): "double"}
TEMPLATES = (
    "adamw", "attention_weights", "attention_weights_backward", "dropout", "gelu_erf", "gelu_tanh", "gru_step",
    "gru_step_backward", "layer_norm", "layer_norm_backward", "layer_norm_columns", "lstm_step", "lstm_step_backward",
    "rnn_step", "rnn_step_backward", "scale", "scatter_add_rows", "softmax", "softmax_backward", "sum_rows",
    "sum_squares",
)  # fmt: skip
PLAIN = ("keep_mask", "keep_mask_of", "to_bfloat16")
NAMES = (*PLAIN, *(f"{name}<{kind}>" for name in TEMPLATES for kind in TYPES.values()))

SOURCE = r"""
// --- What threads do together -----------------------------------------------------------------------------

__device__ long long entry() { return (long long)blockIdx.x * blockDim.x + threadIdx.x; }

// The row of this thread: a block has blockDim.y rows.
__device__ long long row() { return (long long)blockIdx.x * blockDim.y + threadIdx.y; }

// All values of a warp combined, for each of its threads: at every step a thread combines its own with that
// of a partner, 16, 8, 4, 2 and 1 places away. Registers alone, no memory.
template <typename T, typename Combine>
__device__ T combine_warp(T value, Combine combine)
{
    for (int distance = 16; distance > 0; distance /= 2)
        value = combine(value, __shfl_xor_sync(0xffffffff, value, distance));
    return value;
}

// All values of a row combined, for each of its threads. The row has one warp, or several: then each leaves its
// result in shared memory, and every thread combines the results in their order.
template <typename T, typename Combine>
__device__ T combine_row(T value, Combine combine)
{
    value = combine_warp(value, combine);
    if (blockDim.x == 32)
        return value;
    __shared__ T of_warp[32];
    __syncthreads();  // what the call before left here has been read by all
    if (threadIdx.x % 32 == 0)
        of_warp[threadIdx.x / 32] = value;
    __syncthreads();  // all are there
    value = of_warp[0];
    for (int warp = 1; warp < blockDim.x / 32; warp++)
        value = combine(value, of_warp[warp]);
    return value;
}

template <typename T>
__device__ T row_sum(T value) { return combine_row(value, [](T a, T b) { return a + b; }); }

template <typename T>
__device__ T row_max(T value) { return combine_row(value, [](T a, T b) { return a > b ? a : b; }); }

// The sum over the 8 threads that a column has in its block, for each of them.
template <typename T>
__device__ T column_sum(T value)
{
    __shared__ T of_thread[8][32];
    __syncthreads();  // what the call before left here has been read by all
    of_thread[threadIdx.y][threadIdx.x] = value;
    __syncthreads();
    T sum = 0;
    for (int y = 0; y < 8; y++)
        sum += of_thread[y][threadIdx.x];
    return sum;
}

// --- Each thread an entry ---------------------------------------------------------------------------------

// GELU and its slope from one read of x: x Φ(x) and Φ(x) + x φ(x).
template <typename T>
__global__ void gelu_erf(const T* x, T* y, T* slope, long long n)
{
    const long long i = entry();
    if (i >= n) return;
    const T cdf = T(0.5) * erfc(x[i] * T(-0.70710678118654752));  // Φ(x) = erfc(-x / √2) / 2
    const T density = exp(T(-0.5) * x[i] * x[i]) * T(0.39894228040143268);  // φ(x) = e^(-x²/2) / √(2π)
    y[i] = x[i] * cdf;
    slope[i] = cdf + x[i] * density;
}

template <typename T>
__global__ void gelu_tanh(const T* x, T* y, T* slope, long long n)
{
    const long long i = entry();
    if (i >= n) return;
    const T c = T(0.79788456080286536);  // √(2/π)
    const T square = T(0.044715) * x[i] * x[i];
    const T share = 1 / (1 + exp(-2 * c * x[i] * (1 + square)));  // (1 + tanh) / 2, exact also where tanh is near -1
    y[i] = x[i] * share;
    slope[i] = share + 2 * x[i] * share * (1 - share) * c * (1 + 3 * square);
}

template <typename T>
__global__ void dropout(const T* x, const bool* keep, T* y, long long n, double scale)
{
    const long long i = entry();
    if (i < n)
        y[i] = x[i] * T(keep[i]) * T(scale);
}

// Two entries share the hash of their number, 32 bits; each takes a half of it. (Lowbias32, C. Wellons 2018.)
__device__ bool is_kept(long long number, long long first_key, long long second_key, long long threshold)
{
    unsigned int bits = (unsigned int)(number / 2 + first_key);
    bits ^= bits >> 16;
    bits *= 0x7feb352du;
    bits ^= (unsigned int)second_key;
    bits ^= bits >> 15;
    bits *= 0x846ca68bu;
    bits ^= bits >> 16;
    return (number % 2 ? bits >> 16 : bits & 0xffff) >= threshold;
}

// The entries are those from `first` on, of a larger array.
__global__ void keep_mask(
    bool* keep, long long n, long long first, long long first_key, long long second_key, long long threshold)
{
    if (entry() < n)
        keep[entry()] = is_kept(first + entry(), first_key, second_key, threshold);
}

// With keys that lie on the device: a launch that is recorded once then draws anew each time.
__global__ void keep_mask_of(bool* keep, long long n, long long first, const long long* keys, long long threshold)
{
    if (entry() < n)
        keep[entry()] = is_kept(first + entry(), keys[0], keys[1], threshold);
}

// The upper 16 bits of each float, rounded to the nearest, ties to even; a NaN stays one.
__global__ void to_bfloat16(const float* x, unsigned short* y, long long n)
{
    const long long i = entry();
    if (i >= n) return;
    const unsigned int bits = __float_as_uint(x[i]);
    y[i] = x[i] != x[i] ? 0x7fc0 : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

// --- Recurrent steps --------------------------------------------------------------------------------------
// Each thread has one entry of the state (n, d), and at the same place all gates, which lie d entries apart in a row
// (n, G d). A row that has ended (some have, and it is not live) keeps its state.

template <typename T>
__device__ T sigmoid(T x) { return 1 / (1 + exp(-x)); }

__device__ bool has_ended(const bool* live, bool some, long long row) { return some && !live[row]; }

template <typename T>
__global__ void rnn_step(const T* h, T* h_new, const bool* live, bool some, long long n, long long d)
{
    const long long i = entry();
    if (i < n * d)
        h_new[i] = has_ended(live, some, i / d) ? h[i] : tanh(h_new[i]);
}

template <typename T>
__global__ void rnn_step_backward(T* dh, T* d_sum, const T* h_new, const bool* live, bool some, long long n,
                                  long long d)
{
    const long long i = entry();
    if (i >= n * d) return;
    const bool ended = has_ended(live, some, i / d);
    d_sum[i] = ended ? T(0) : dh[i] * (1 - h_new[i] * h_new[i]);
    if (!ended)
        dh[i] = 0;
}

template <typename T>
__global__ void gru_step(T* gates, const T* heard, const T* h, T* h_new, const bool* live, bool some, long long n,
                         long long d)
{
    const long long i = entry();
    if (i >= n * d) return;
    gates += i / d * 3 * d + i % d;
    heard += i / d * 3 * d + i % d;
    const T r = sigmoid(gates[0] + heard[0]), z = sigmoid(gates[d] + heard[d]);
    const T g = tanh(gates[2 * d] + r * heard[2 * d]);
    gates[0] = r;
    gates[d] = z;
    gates[2 * d] = g;
    h_new[i] = has_ended(live, some, i / d) ? h[i] : g + z * (h[i] - g);
}

template <typename T>
__global__ void gru_step_backward(T* dh, T* gates, T* heard, const T* h, const bool* live, bool some, long long n,
                                  long long d)
{
    const long long i = entry();
    if (i >= n * d) return;
    gates += i / d * 3 * d + i % d;
    heard += i / d * 3 * d + i % d;
    const bool ended = has_ended(live, some, i / d);
    const T r = gates[0], z = gates[d], g = gates[2 * d];
    const T d_z = ended ? T(0) : dh[i] * (h[i] - g) * z * (1 - z);
    const T d_g = ended ? T(0) : dh[i] * (1 - z) * (1 - g * g);
    const T d_r = ended ? T(0) : d_g * heard[2 * d] * r * (1 - r);
    gates[0] = heard[0] = d_r;
    gates[d] = heard[d] = d_z;
    gates[2 * d] = d_g;
    heard[2 * d] = ended ? T(0) : d_g * r;
    if (!ended)
        dh[i] *= z;
}

template <typename T>
__global__ void lstm_step(T* gates, const T* h, const T* c, T* h_new, T* c_new, const bool* live, bool some,
                          long long n, long long d)
{
    const long long i = entry();
    if (i >= n * d) return;
    gates += i / d * 4 * d + i % d;
    const T input = sigmoid(gates[0]), forget = sigmoid(gates[d]);
    const T candidate = tanh(gates[2 * d]), output = sigmoid(gates[3 * d]);
    gates[0] = input;
    gates[d] = forget;
    gates[2 * d] = candidate;
    gates[3 * d] = output;
    const bool ended = has_ended(live, some, i / d);
    const T cell = ended ? c[i] : forget * c[i] + input * candidate;
    c_new[i] = cell;
    h_new[i] = ended ? h[i] : output * tanh(cell);
}

template <typename T>
__global__ void lstm_step_backward(T* dh, T* dc, T* gates, const T* c, const T* c_new, const bool* live, bool some,
                                   long long n, long long d)
{
    const long long i = entry();
    if (i >= n * d) return;
    gates += i / d * 4 * d + i % d;
    const bool ended = has_ended(live, some, i / d);
    const T input = gates[0], forget = gates[d], candidate = gates[2 * d], output = gates[3 * d];
    const T squashed = tanh(c_new[i]);
    const T d_cell = dc[i] + dh[i] * output * (1 - squashed * squashed);
    gates[0] = ended ? T(0) : d_cell * candidate * input * (1 - input);
    gates[d] = ended ? T(0) : d_cell * c[i] * forget * (1 - forget);
    gates[2 * d] = ended ? T(0) : d_cell * input * (1 - candidate * candidate);
    gates[3 * d] = ended ? T(0) : dh[i] * squashed * output * (1 - output);
    if (!ended) {
        dc[i] = d_cell * forget;
        dh[i] = 0;
    }
}

// --- Rows -------------------------------------------------------------------------------------------------

// Each thread has the entries threadIdx.x, + blockDim.x, + 2 blockDim.x … of its row.
template <typename T>
__global__ void softmax(const T* x, T* y, T* largest_of_row, T* log_total, long long rows, long long d)
{
    if (row() >= rows) return;
    x += row() * d;
    y += row() * d;
    T largest = x[0];
    for (long long i = threadIdx.x; i < d; i += blockDim.x)
        largest = x[i] > largest ? x[i] : largest;
    largest = row_max(largest);
    T total = 0;
    for (long long i = threadIdx.x; i < d; i += blockDim.x)
        total += exp(x[i] - largest);
    total = row_sum(total);
    for (long long i = threadIdx.x; i < d; i += blockDim.x)
        y[i] = exp(x[i] - largest) / total;  // e^x twice costs less than a walk to memory and back
    if (threadIdx.x == 0) {
        largest_of_row[row()] = largest;
        log_total[row()] = log(total);
    }
}

// dx = y (dy - Σ dy y).
template <typename T>
__global__ void softmax_backward(const T* dy, const T* y, T* dx, long long rows, long long d)
{
    if (row() >= rows) return;
    dy += row() * d;
    y += row() * d;
    dx += row() * d;
    T along = 0;
    for (long long i = threadIdx.x; i < d; i += blockDim.x)
        along += dy[i] * y[i];
    along = row_sum(along);
    for (long long i = threadIdx.x; i < d; i += blockDim.x)
        dx[i] = y[i] * (dy[i] - along);
}

// Everything between the two products of attention, in one pass over the scores instead of four: scale, mask,
// softmax, dropout. Scores become weights in place. Row r of the scores has row r / rows_of_mask of the mask,
// because a padding mask is the same for all heads and queries; rows_of_mask = 0: no mask.
template <typename T>
__global__ void attention_weights(T* scores, const T* mask, const bool* keep, T* dropped, long long rows, long long d,
                                  long long rows_of_mask, bool dropping, double scale, double keep_scale)
{
    if (row() >= rows) return;
    scores += row() * d;
    keep += row() * d;
    dropped += row() * d;
    const bool masked = rows_of_mask > 0;
    if (masked)
        mask += row() / rows_of_mask * d;
    T largest = scores[0] * T(scale) + (masked ? mask[0] : T(0));
    for (long long i = threadIdx.x; i < d; i += blockDim.x) {
        const T score = scores[i] * T(scale) + (masked ? mask[i] : T(0));
        largest = score > largest ? score : largest;
    }
    largest = row_max(largest);
    T total = 0;
    for (long long i = threadIdx.x; i < d; i += blockDim.x) {
        scores[i] = exp(scores[i] * T(scale) + (masked ? mask[i] : T(0)) - largest);
        total += scores[i];
    }
    total = row_sum(total);
    for (long long i = threadIdx.x; i < d; i += blockDim.x) {
        scores[i] /= total;
        if (dropping)
            dropped[i] = scores[i] * T(keep[i]) * T(keep_scale);
    }
}

// The way back, over the gradient of the weights in place, and once more the weights after dropout, which the
// forward did not keep: d_scores = scale · A (dA - Σ dA A) with dA = dropout(d).
template <typename T>
__global__ void attention_weights_backward(T* d_weights, const T* weights, const bool* keep, T* dropped, long long rows,
                                           long long d, bool dropping, double scale, double keep_scale)
{
    if (row() >= rows) return;
    d_weights += row() * d;
    weights += row() * d;
    keep += row() * d;
    dropped += row() * d;
    T along = 0;
    for (long long i = threadIdx.x; i < d; i += blockDim.x) {
        const T kept = dropping ? T(keep[i]) * T(keep_scale) : T(1);
        d_weights[i] *= kept;
        along += d_weights[i] * weights[i];
        if (dropping)
            dropped[i] = weights[i] * kept;
    }
    along = row_sum(along);
    for (long long i = threadIdx.x; i < d; i += blockDim.x)
        d_weights[i] = T(scale) * weights[i] * (d_weights[i] - along);
}

template <typename T>
__global__ void layer_norm(const T* x, const T* weight, const T* bias, T* y, T* normalised, T* inverse_std,
                           long long rows, long long d, double eps)
{
    if (row() >= rows) return;
    x += row() * d;
    y += row() * d;
    normalised += row() * d;
    T sum = 0;
    for (long long i = threadIdx.x; i < d; i += blockDim.x)
        sum += x[i];
    const T mean = row_sum(sum) / d;
    T squares = 0;  // of the centred row: Σ x² - d μ² would lose digits
    for (long long i = threadIdx.x; i < d; i += blockDim.x)
        squares += (x[i] - mean) * (x[i] - mean);
    const T inverse = 1 / sqrt(row_sum(squares) / d + T(eps));
    for (long long i = threadIdx.x; i < d; i += blockDim.x) {
        normalised[i] = (x[i] - mean) * inverse;
        y[i] = normalised[i] * weight[i] + bias[i];
    }
    if (threadIdx.x == 0)
        inverse_std[row()] = inverse;
}

// With g = dy · weight: dx = (g - mean(g) - x̂ mean(g x̂)) / σ.
template <typename T>
__global__ void layer_norm_backward(const T* dy, const T* normalised, const T* inverse_std, const T* weight,
                                    T* dx, long long rows, long long d)
{
    if (row() >= rows) return;
    dy += row() * d;
    normalised += row() * d;
    dx += row() * d;
    T sum = 0, along = 0;
    for (long long i = threadIdx.x; i < d; i += blockDim.x) {
        sum += dy[i] * weight[i];
        along += dy[i] * weight[i] * normalised[i];
    }
    const T mean = row_sum(sum) / d, mean_along = row_sum(along) / d;
    for (long long i = threadIdx.x; i < d; i += blockDim.x)
        dx[i] = (dy[i] * weight[i] - mean - normalised[i] * mean_along) * inverse_std[row()];
}

// --- Columns ----------------------------------------------------------------------------------------------

// Block (a, b) sums the a-th piece of the rows, in the columns 32 b … 32 b + 31: out (pieces, d). Its 8 threads
// for a column take every eighth row each. Summed once more, the pieces give the whole.
template <typename T>
__global__ void sum_rows(const T* x, T* out, long long rows, long long d, long long piece)
{
    const long long column = (long long)blockIdx.y * 32 + threadIdx.x;
    const long long start = blockIdx.x * piece, end = start + piece < rows ? start + piece : rows;
    T sum = 0;
    if (column < d)
        for (long long i = start + threadIdx.y; i < end; i += 8)
            sum += x[i * d + column];
    sum = column_sum(sum);
    if (threadIdx.y == 0 && column < d)
        out[blockIdx.x * d + column] = sum;
}

// The same for both gradients at once, so that dy is read once: Σ dy x̂ to the left half of out
// (pieces, 2 d), Σ dy to the right.
template <typename T>
__global__ void layer_norm_columns(const T* dy, const T* normalised, T* out, long long rows, long long d,
                                   long long piece)
{
    const long long column = (long long)blockIdx.y * 32 + threadIdx.x;
    const long long start = blockIdx.x * piece, end = start + piece < rows ? start + piece : rows;
    T of_weight = 0, of_bias = 0;
    if (column < d)
        for (long long i = start + threadIdx.y; i < end; i += 8) {
            of_weight += dy[i * d + column] * normalised[i * d + column];
            of_bias += dy[i * d + column];
        }
    of_weight = column_sum(of_weight);
    of_bias = column_sum(of_bias);
    if (threadIdx.y == 0 && column < d) {
        out[blockIdx.x * 2 * d + column] = of_weight;
        out[(blockIdx.x * 2 + 1) * d + column] = of_bias;
    }
}

// The ids are sorted, and order says which row of `values` each belongs to. Block (a, b) is for place a and
// the columns 32 b … 32 b + 31; where a run of equal ids starts, it sums the run, elsewhere it has nothing
// to do.
template <typename T>
__global__ void scatter_add_rows(const long long* ids, const long long* order, const T* values, T* out,
                                 long long n, long long d, long long num_rows)
{
    const long long start = blockIdx.x, column = (long long)blockIdx.y * 32 + threadIdx.x;
    const long long id = ids[start];
    if (start > 0 && ids[start - 1] == id) return;
    if (id < 0 || id >= num_rows) return;  // never write outside
    T sum = 0;
    if (column < d)
        for (long long i = start + threadIdx.y; i < n && ids[i] == id; i += 8)
            sum += values[order[i] * d + column];
    sum = column_sum(sum);
    if (threadIdx.y == 0 && column < d)
        out[id * d + column] = sum;
}

// --- Many arrays in one launch ----------------------------------------------------------------------------
// A model has hundreds of parameters, most of them small: a launch for each would take longer than the work.
// So they are cut into pieces, and a row of the table `pieces` says for each block where its piece starts in
// every array, as addresses, and last how long it is. Numbers that change from step to step lie on the
// device.

template <typename T>
__global__ void adamw(const long long* pieces, const double* step_size, const double* decay,
                      const double* second_correction, double beta1, double beta2, double eps)
{
    const long long* piece = pieces + blockIdx.x * 5;
    T* p = (T*)piece[0];
    const T* g = (const T*)piece[1];
    T* m = (T*)piece[2];
    T* v = (T*)piece[3];
    const long long n = piece[4];
    for (long long i = threadIdx.x; i < n; i += blockDim.x) {
        // Four reads and three writes, 28 bytes for an entry of float32: between them all stays in registers.
        const T gradient = g[i];
        const T first = T(beta1) * m[i] + T(1 - beta1) * gradient;
        const T second = T(beta2) * v[i] + T(1 - beta2) * gradient * gradient;
        const T step = first / (sqrt(second) / T(*second_correction) + T(eps));
        p[i] = T(1 - *decay) * p[i] - T(*step_size) * step;
        m[i] = first;
        v[i] = second;
    }
}

// The sum of squares of each piece: out (pieces,), in float64, as a square may be outside of float32.
template <typename T>
__global__ void sum_squares(const long long* pieces, double* out)
{
    const T* x = (const T*)pieces[blockIdx.x * 2];
    const long long n = pieces[blockIdx.x * 2 + 1];
    double sum = 0;
    for (long long i = threadIdx.x; i < n; i += blockDim.x)
        sum += (double)x[i] * x[i];
    sum = row_sum(sum);
    if (threadIdx.x == 0)
        out[blockIdx.x] = sum;
}

// The factor lies on the device, so that nobody waits for it; a factor of 1, as when no gradient needs
// clipping, costs no walk over memory.
template <typename T>
__global__ void scale(const long long* pieces, const T* factor)
{
    if (*factor == 1) return;
    T* x = (T*)pieces[blockIdx.x * 2];
    const long long n = pieces[blockIdx.x * 2 + 1];
    for (long long i = threadIdx.x; i < n; i += blockDim.x)
        x[i] *= *factor;
}
"""
