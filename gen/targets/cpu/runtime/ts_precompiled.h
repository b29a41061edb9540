/* What nearly every kernel's file includes, so that a build reads it once a level: half of the
   compiler's time is in the intrinsics' headers. No file includes this one by name. */
#include "ts_abi.h"
#include "ts_simd.h"
#include "ts_math.h"
#include "ts_stream.h"
