/* Which ISA levels this machine runs. */
#include "ts_engine.h"

const char *const ts_level_names[TS_LEVELS] = {
    "v2", "v3", "v4", "neon", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120"};

bool ts_level_supported(ts_level level)
{
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool v2 = __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
    const bool v3 = v2 && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
                    __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
    const bool v4 = v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                    __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") &&
                    __builtin_cpu_supports("avx512vl");
    return (level == TS_V2 && v2) || (level == TS_V3 && v3) || (level == TS_V4 && v4);
#elif defined(__aarch64__)
    return level == TS_NEON;
#else
#error "tilesmith has no ISA level for this processor"
#endif
}

#if defined __x86_64__
#define TS_CPU_HAS(feature) __builtin_cpu_supports(feature)
#else
#define TS_CPU_HAS(feature) false
#endif
bool ts_cpu_has_avx512vnni(void) { return TS_CPU_HAS("avx512vnni"); }
bool ts_cpu_has_avx512bf16(void) { return TS_CPU_HAS("avx512bf16"); }

int ts_best_level(void)
{
    int best = -1;
    for (int level = 0; level < TS_ARCHITECTURES; level++)
        if (ts_level_supported((ts_level)level))
            best = level;
    return best;
}

static ts_level used;

void ts_use_level(ts_level level) { used = level; }

ts_level ts_level_used(void) { return used; }

const char *ts_compiler(void)
{
#if defined __clang__
    return "clang " __clang_version__;
#elif defined __GNUC__
    return "gcc " __VERSION__;
#else
    return "unknown";
#endif
}
