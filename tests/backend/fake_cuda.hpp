// CUDA on the CPU, so that tests can run the kernels of minigrad/backend/cupy_kernels.py where there is no GPU.
//
// Included before the kernels and compiled by g++. Each thread of a block is a fiber: it runs until it waits
// for others (__syncthreads, a shuffle), then the next one does. Blocks run one after another, and so do
// warps and threads, in an order drawn anew at every barrier; shared memory is filled with rubbish before every block.
// So a barrier that is missing, or a value that is read before anybody wrote it, gives wrong numbers here
// rather than on some GPU on some days. Stricter than a GPU: a barrier that part of a block or warp never
// reaches is an error even where CUDA would let it pass.

#include <setjmp.h>
#include <ucontext.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#define __global__
#define __device__
// __shared__ T name[n]; has become static T name[n]; fake::shared(&name, sizeof name);
using std::erf, std::erfc, std::exp, std::log, std::sqrt, std::tanh;  // CUDA has them for float too

struct dim3 { unsigned x = 1, y = 1, z = 1; };
static dim3 threadIdx, blockIdx, blockDim, gridDim;

namespace fake {

#if defined(__GNUC__) && defined(__x86_64__)
// As setjmp and longjmp, but faster, for they save three registers and look after nothing else.
#define SAVE(place) __builtin_setjmp(place)
#define JUMP(place) __builtin_longjmp(place, 1)
typedef void* Place[5];
#else
#define SAVE(place) _setjmp(place)
#define JUMP(place) _longjmp(place, 1)
typedef jmp_buf Place;
#endif

enum State { NEW, READY, AT_BLOCK_BARRIER, AT_WARP_BARRIER, DONE };

struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack{new char[STACK]};
    Place resume;
    static const int STACK = 32 * 1024;
};

struct Thread { dim3 index; State state; Fiber* fiber; uint64_t shuffled[2]; int shuffles; };

static std::vector<std::unique_ptr<Fiber>> fibers;  // kept from launch to launch
static std::vector<Fiber*> idle;
static std::vector<Thread> threads;  // of the block
static int running;
static int warp, size, left, position, direction;  // a round visits the threads of a warp, from a place, in a direction
static Place scheduler;
static void (*body)(void*);
static void* body_argument;
static uint32_t random_state = 1;

static uint32_t draw()
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 17;
    return random_state ^= random_state << 5;
}

// The next thread of the round that can run; -1 at the end of the round.
static int next()
{
    while (left > 0) {
        const int i = warp + position;
        position = (position + direction) % size;
        left--;
        if (threads[i].state == NEW || threads[i].state == READY) {
            threadIdx = threads[i].index;
            return i;
        }
    }
    return -1;
}

static void life_of_a_fiber();

// Goes on with the thread `i`, or with the scheduler.
[[noreturn]] __attribute__((noinline)) static void go(int i)
{
    if (i < 0)
        JUMP(scheduler);
    running = i;
    Fiber*& fiber = threads[i].fiber;
    if (threads[i].state == READY)
        JUMP(fiber->resume);
    if (!idle.empty()) {  // it sleeps in life_of_a_fiber
        fiber = idle.back();
        idle.pop_back();
        JUMP(fiber->resume);
    }
    fibers.emplace_back(fiber = new Fiber);
    getcontext(&fiber->context);
    fiber->context.uc_stack.ss_sp = fiber->stack.get();
    fiber->context.uc_stack.ss_size = Fiber::STACK - fibers.size() * 320 % 8192;  // not all in one set of the cache
    makecontext(&fiber->context, life_of_a_fiber, 0);
    setcontext(&fiber->context);
    std::abort();
}

static void life_of_a_fiber()  // one thread after another
{
    for (;;) {
        body(body_argument);
        threads[running].state = DONE;
        Fiber* self = threads[running].fiber;
        const int i = next();
        if (i >= 0 && threads[i].state == NEW) {
            running = i;
            threads[i].fiber = self;
        } else {
            idle.push_back(self);
            if (SAVE(self->resume) == 0)
                go(i);
        }
    }
}

__attribute__((noinline)) static void wait(State barrier)
{
    threads[running].state = barrier;
    if (SAVE(threads[running].fiber->resume) == 0)
        go(next());
}

__attribute__((noinline)) static void run_round()
{
    left = size;
    position = draw() % size;
    direction = draw() % 2 ? 1 : size - 1;
    if (SAVE(scheduler) == 0)
        go(next());
}

// Lets the threads [first, last) go on if all of them wait at the barrier; says whether they did.
static bool release(int first, int last, State barrier)
{
    for (int i = first; i < last; i++)
        if (threads[i].state != barrier)
            return false;
    for (int i = first; i < last; i++)
        threads[i].state = READY;
    return true;
}

static std::map<void*, size_t> shared_memory;

static void spoil(void* start, size_t bytes) { std::memset(start, 0x7f, bytes); }  // 3e38 in float, 1e306 in double

inline void shared(void* start, size_t bytes)
{
    if (shared_memory.emplace(start, bytes).second)
        spoil(start, bytes);
}

static const char* run_block()
{
    const int count = blockDim.x * blockDim.y * blockDim.z;
    for (auto [start, bytes] : shared_memory)
        spoil(start, bytes);
    threads.resize(count);
    for (int i = 0; i < count; i++)
        threads[i] = {{i % blockDim.x, i / blockDim.x % blockDim.y, i / (blockDim.x * blockDim.y)}, NEW};
    do {
        const int warps = (count + 31) / 32, start = draw() % warps;
        for (int n = 0; n < warps; n++) {
            warp = (start + n) % warps * 32;
            size = std::min(32, count - warp);
            do
                run_round();
            while (release(warp, warp + size, AT_WARP_BARRIER));
        }
    } while (release(0, count, AT_BLOCK_BARRIER));
    for (Thread& thread : threads)
        if (thread.state != DONE)
            return "some threads wait at a barrier to which others never come";
    return nullptr;
}

static const char* run(dim3 grid, dim3 block)
{
    gridDim = grid;
    blockDim = block;
    const uint64_t count = uint64_t(grid.x) * grid.y * grid.z;
    const bool backwards = draw() % 2;
    for (uint64_t step = 0; step < count; step++) {
        const uint64_t i = backwards ? count - 1 - step : step;
        blockIdx = {unsigned(i % grid.x), unsigned(i / grid.x % grid.y), unsigned(i / grid.x / grid.y)};
        if (const char* error = run_block()) {
            idle.clear();  // fibers in the middle of a kernel are of no use any more
            fibers.clear();
            return error;
        }
    }
    return nullptr;
}

// --- What Python calls ------------------------------------------------------------------------------------

// The types of a kernel's parameters as NumPy's letters, "*" for a pointer: "*f*fqd".
template <typename T>
std::string letters()
{
    if constexpr (std::is_pointer_v<T>)
        return "*" + letters<std::remove_cv_t<std::remove_pointer_t<T>>>();
    else if constexpr (std::is_same_v<T, bool>)
        return "?";
    else if constexpr (std::is_floating_point_v<T>)
        return sizeof(T) == 4 ? "f" : "d";
    else if constexpr (std::is_same_v<T, unsigned short>)
        return "H";
    else
        return sizeof(T) == 4 ? "i" : sizeof(T) == 8 ? "q" : "unknown";
}

struct Kernel {
    std::string name, parameters;
    std::function<const char*(dim3, dim3, const char*)> launch;
};

template <typename... P, size_t... I>
const char* launch(void (*kernel)(P...), dim3 grid, dim3 block, const char* arguments, std::index_sequence<I...>)
{
    auto call = [=] { kernel(*(P*)(arguments + 8 * I)...); };
    body = [](void* it) { (*(decltype(call)*)it)(); };
    body_argument = &call;
    return run(grid, block);
}

template <typename... P>
Kernel make(const char* name, void (*kernel)(P...))
{
    return {name, (letters<P>() + ... + ""), [=](dim3 grid, dim3 block, const char* arguments) {
                return launch(kernel, grid, block, arguments, std::index_sequence_for<P...>());
            }};
}

extern std::vector<Kernel> kernels;

extern "C" const char* fake_parameters(const char* name)
{
    for (Kernel& kernel : kernels)
        if (kernel.name == name)
            return kernel.parameters.c_str();
    return nullptr;
}

// arguments: each in 8 bytes.
extern "C" const char* fake_launch(const char* name, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned x,
                                   unsigned y, unsigned z, const char* arguments)
{
    for (Kernel& kernel : kernels)
        if (kernel.name == name)
            return kernel.launch({grid_x, grid_y, grid_z}, {x, y, z}, arguments);
    return "no such kernel";
}

}  // namespace fake

// --- What kernels call ------------------------------------------------------------------------------------

inline unsigned __float_as_uint(float x)
{
    unsigned bits;
    std::memcpy(&bits, &x, sizeof bits);
    return bits;
}

inline void __syncthreads() { fake::wait(fake::AT_BLOCK_BARRIER); }

template <typename T>
T __shfl_xor_sync(unsigned, T value, int distance)
{
    using fake::threads;
    const int me = fake::running, other = me ^ distance;
    const int slot = threads[me].shuffles++ % 2;  // two in turn: who is late reads the one, who is early writes the other
    std::memcpy(&threads[me].shuffled[slot], &value, sizeof value);
    fake::wait(fake::AT_WARP_BARRIER);
    if (other < int(threads.size()))
        std::memcpy(&value, &threads[other].shuffled[slot], sizeof value);
    return value;
}
