/* Fibers: a stack a thread, and a switch between one of them and the scheduler. */
#ifndef TS_EMULATOR_FIBERS_H
#define TS_EMULATOR_FIBERS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include <vector>

#if !defined(__ELF__) || !(defined(__x86_64__) || defined(__aarch64__))
#define TS_UCONTEXT /* the system's own switch, which is slower */
#endif
#ifdef TS_UCONTEXT
#include <ucontext.h>
#endif

namespace
{

const size_t STACK = 256 << 10; /* pages of it that nobody touches cost nothing */

struct Fiber {
    char *stack = nullptr; /* its lowest page is no one's: what runs over ends there */
    void (*run)() = nullptr;
#ifdef TS_UCONTEXT
    ucontext_t context;
#else
    void *top = nullptr;
#endif
};

std::vector<Fiber> fibers;

#ifdef TS_UCONTEXT
ucontext_t scheduler;
#else
void *scheduler;

/* Saves what a call has to keep, puts the stack's top into *from, and goes on at another's. */
extern "C" void ts_fiber_switch(void **from, void *to);
#endif

#if defined(TS_UCONTEXT)
#elif defined(__x86_64__)
asm(R"(
.text
.type ts_fiber_switch, @function
ts_fiber_switch:
    pushq %rbp
    pushq %rbx
    pushq %r12
    pushq %r13
    pushq %r14
    pushq %r15
    movq %rsp, (%rdi)
    movq %rsi, %rsp
    popq %r15
    popq %r14
    popq %r13
    popq %r12
    popq %rbx
    popq %rbp
    ret
.size ts_fiber_switch, .-ts_fiber_switch
)");
const int SAVED = 6;  /* words below the address to go on at */
const int FRAME = 8;  /* words; a function begins with its stack at 16 n + 8 */
#elif defined(__aarch64__)
asm(R"(
.text
.type ts_fiber_switch, %function
ts_fiber_switch:
    sub sp, sp, #160
    stp x19, x20, [sp]
    stp x21, x22, [sp, #16]
    stp x23, x24, [sp, #32]
    stp x25, x26, [sp, #48]
    stp x27, x28, [sp, #64]
    stp x29, x30, [sp, #80]
    stp d8, d9, [sp, #96]
    stp d10, d11, [sp, #112]
    stp d12, d13, [sp, #128]
    stp d14, d15, [sp, #144]
    mov x9, sp
    str x9, [x0]
    mov sp, x1
    ldp x19, x20, [sp]
    ldp x21, x22, [sp, #16]
    ldp x23, x24, [sp, #32]
    ldp x25, x26, [sp, #48]
    ldp x27, x28, [sp, #64]
    ldp x29, x30, [sp, #80]
    ldp d8, d9, [sp, #96]
    ldp d10, d11, [sp, #112]
    ldp d12, d13, [sp, #128]
    ldp d14, d15, [sp, #144]
    add sp, sp, #160
    ret
.size ts_fiber_switch, .-ts_fiber_switch
)");
const int SAVED = 11; /* x30 */
const int FRAME = 20;
#endif

uint32_t started; /* the fiber that begins */

void begin()
{
    Fiber &fiber = fibers[started];
    fiber.run();
#ifndef TS_UCONTEXT
    ts_fiber_switch(&fiber.top, scheduler);
#endif
}

/* Stacks for so many. Returns whether there is memory for them. */
bool ts_fibers(size_t count)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    while (fibers.size() < count) {
        void *stack = mmap(nullptr, STACK, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (stack == MAP_FAILED || mprotect(stack, page, PROT_NONE))
            return false;
        fibers.emplace_back();
        fibers.back().stack = (char *)stack;
    }
    return true;
}

/* The fiber's next run begins with the function. */
void ts_fiber_start(uint32_t number, void (*run)())
{
    Fiber &fiber = fibers[number];
    fiber.run = run;
#ifdef TS_UCONTEXT
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack;
    fiber.context.uc_stack.ss_size = STACK;
    fiber.context.uc_link = &scheduler;
    makecontext(&fiber.context, begin, 0);
#else
    void **top = (void **)(fiber.stack + STACK) - FRAME;
    top[SAVED] = (void *)begin;
    fiber.top = top;
#endif
}

/* Runs the fiber until it leaves or ends. */
void ts_fiber_run(uint32_t number)
{
    started = number;
#ifdef TS_UCONTEXT
    swapcontext(&scheduler, &fibers[number].context);
#else
    ts_fiber_switch(&scheduler, fibers[number].top);
#endif
}

/* Leaves the fiber that runs, which is this one. */
void ts_fiber_leave(uint32_t number)
{
#ifdef TS_UCONTEXT
    swapcontext(&fibers[number].context, &scheduler);
#else
    ts_fiber_switch(&fibers[number].top, scheduler);
#endif
}

} // namespace

#endif
