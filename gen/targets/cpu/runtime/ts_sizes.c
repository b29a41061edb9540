/* What an expression over the dims and scalars of a call comes to. */
#include "ts_engine.h"

static ts_evaluated combined(ts_operation operation, int64_t a, int64_t b, int64_t *result)
{
    bool overflow = false;
    if ((operation == TS_FLOORDIV || operation == TS_MOD) && b <= 0)
        return TS_BAD_DIVISOR;
    switch (operation) {
    case TS_ADD: overflow = __builtin_add_overflow(a, b, result); break;
    case TS_SUB: overflow = __builtin_sub_overflow(a, b, result); break;
    case TS_MUL: overflow = __builtin_mul_overflow(a, b, result); break;
    case TS_FLOORDIV: *result = a / b - (a % b < 0); break;
    case TS_MOD: *result = a % b + (a % b < 0 ? b : 0); break;
    case TS_MIN: *result = a < b ? a : b; break;
    case TS_MAX: *result = a > b ? a : b; break;
    case TS_EQ: *result = a == b; break;
    case TS_NE: *result = a != b; break;
    case TS_LT: *result = a < b; break;
    case TS_LE: *result = a <= b; break;
    case TS_GT: *result = a > b; break;
    default: *result = a >= b; break; /* TS_GE */
    }
    return overflow ? TS_TOO_LARGE : TS_EXACT;
}

ts_evaluated ts_evaluate(const ts_term *terms, const int64_t *dims, const ts_scalar *scalars,
                         int64_t *result)
{
    ts_scalar stack[TS_MAX_TERMS];
    int depth = 0;
    for (; terms->operation != TS_END; terms++) {
        ts_evaluated status;
        switch (terms->operation) {
        case TS_NUMBER:
        case TS_REAL_NUMBER: stack[depth++].i64 = terms->value; break;
        case TS_DIM: stack[depth++].i64 = dims[terms->value]; break;
        case TS_SCALAR:
        case TS_REAL_SCALAR: stack[depth++] = scalars[terms->value]; break;
        case TS_REAL_ADD: depth--; stack[depth - 1].f64 += stack[depth].f64; break;
        case TS_REAL_SUB: depth--; stack[depth - 1].f64 -= stack[depth].f64; break;
        case TS_REAL_MUL: depth--; stack[depth - 1].f64 *= stack[depth].f64; break;
        case TS_WHOLE:
            if (!(stack[depth - 1].f64 > -0x1p63 && stack[depth - 1].f64 < 0x1p63))
                return TS_TOO_LARGE;
            stack[depth - 1].i64 = (int64_t)stack[depth - 1].f64;
            break;
        default:
            depth--;
            status = combined(terms->operation, stack[depth - 1].i64, stack[depth].i64,
                              &stack[depth - 1].i64);
            if (status != TS_EXACT)
                return status;
        }
    }
    *result = stack[0].i64;
    return TS_EXACT;
}
