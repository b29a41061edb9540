/* Written by `python -m build_tools.polynomials`, which says what each polynomial stands for.
   TS_NAME_TOP is the coefficient of the highest power; TS_NAME(X) is X(c) for the others, falling.
   Errors are largest ones, weighted so that they are relative to the function's value. */

/* exp f32: error 3.8e-09 */
#define TS_EXP_F32_TOP 0x1.6a2432p-10f
#define TS_EXP_F32(X) \
    X(0x1.1239e2p-7f) \
    X(0x1.5558f2p-5f) \
    X(0x1.555492p-3f) \
    X(0x1.fffffcp-2f)

/* log f32: error 3.2e-09 */
#define TS_LOG_F32_TOP 0x1.145782p-4f
#define TS_LOG_F32(X) \
    X(-0x1.de3be6p-4f) \
    X(0x1.e6f062p-4f) \
    X(-0x1.fc220ep-4f) \
    X(0x1.233768p-3f) \
    X(-0x1.555c4ep-3f) \
    X(0x1.99a4b6p-3f) \
    X(-0x1.000006p-2f) \
    X(0x1.555548p-2f)

/* erf f32: error 8.3e-09 */
#define TS_ERF_F32_TOP -0x1.3694dap-17f
#define TS_ERF_F32(X) \
    X(0x1.ed6a72p-14f) \
    X(-0x1.4bc928p-11f) \
    X(0x1.b4ffb4p-10f) \
    X(-0x1.505bbap-13f) \
    X(-0x1.39cdcap-6f) \
    X(0x1.a4fa5ep-4f) \
    X(0x1.45f2fap-1f) \
    X(0x1.06eba8p-3f)

/* tanh f32: error 2.3e-09 */
#define TS_TANH_F32_TOP -0x1.950034p-8f
#define TS_TANH_F32(X) \
    X(0x1.582fb6p-6f) \
    X(-0x1.b90948p-5f) \
    X(0x1.110c72p-3f) \
    X(-0x1.555548p-2f)

/* exp f64: error 7.2e-19 */
#define TS_EXP_F64_TOP 0x1.1e3d4b7f4a54p-29
#define TS_EXP_F64(X) \
    X(0x1.af6be71cd8347p-26) \
    X(0x1.27e5b430e8e25p-22) \
    X(0x1.71ddf02147034p-19) \
    X(0x1.a01a01369a83ep-16) \
    X(0x1.a01a01b37e041p-13) \
    X(0x1.6c16c16c30464p-10) \
    X(0x1.111111110ec5ep-7) \
    X(0x1.5555555555503p-5) \
    X(0x1.555555555555bp-3) \
    X(0x1p-1)

/* log f64: error 1.4e-18 */
#define TS_LOG_F64_TOP 0x1.2f02e2be0b149p-3
#define TS_LOG_F64(X) \
    X(0x1.39a1fbe3db5e3p-3) \
    X(0x1.74663c50f70c7p-3) \
    X(0x1.c71c521656dc9p-3) \
    X(0x1.24924941e0ba5p-2) \
    X(0x1.999999997fee9p-2) \
    X(0x1.5555555555592p-1)

/* erf f64: error 2.9e-17 */
#define TS_ERF_F64_TOP -0x1.02d2f72029adep-48
#define TS_ERF_F64(X) \
    X(0x1.6b9c75fbdfd8bp-43) \
    X(-0x1.d976254db9721p-39) \
    X(0x1.7a5e8d79581efp-35) \
    X(-0x1.9d79d542fc4d5p-32) \
    X(0x1.4469eced4e75bp-29) \
    X(-0x1.7227f0518f6e1p-27) \
    X(0x1.2912191a522b7p-25) \
    X(-0x1.1a4f430acb20fp-24) \
    X(-0x1.9282ed9e1d03fp-27) \
    X(0x1.325c85079d88dp-21) \
    X(-0x1.116db3f382ff9p-19) \
    X(0x1.a48038b289f37p-19) \
    X(0x1.a96cae14cb3e1p-19) \
    X(-0x1.f0327c2f9041ep-16) \
    X(0x1.0e32f2e0d8cbap-14) \
    X(0x1.b29afde19b43ep-16) \
    X(-0x1.35663beff1011p-11) \
    X(0x1.bca691e1a2555p-10) \
    X(-0x1.b6b6a1ccd547dp-13) \
    X(-0x1.396685908cd64p-6) \
    X(0x1.a4f4e2a1a9b34p-4) \
    X(0x1.45f306dc9c8d9p-1) \
    X(0x1.06eba8214db68p-3)

/* tanh f64: error 6.9e-18 */
#define TS_TANH_F64_TOP -0x1.3d27f4e90bb6ep-16
#define TS_TANH_F64(X) \
    X(0x1.5972668b02003p-14) \
    X(-0x1.e80a94725d0e6p-13) \
    X(0x1.3460aca292c5ap-11) \
    X(-0x1.7d8b95e659f1ap-10) \
    X(0x1.d6d24794dfd32p-9) \
    X(-0x1.226e2d02690f6p-7) \
    X(0x1.664f484956c61p-6) \
    X(-0x1.ba1ba1b935e5fp-5) \
    X(0x1.11111111102b6p-3) \
    X(-0x1.555555555554bp-2)
