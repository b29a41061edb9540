/* Written by `python -m build_tools.polynomials`, which says what each polynomial stands for.
   TS_NAME_TOP is the coefficient of the highest power; TS_NAME(X) is X(c) for the others, falling.
   Errors are largest ones, weighted so that they are relative to the function's value.
   Below them are the forms of pi/2 and 2/pi with which angles are reduced. */

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

/* tanh f32: error 6.0e-10 */
#define TS_TANH_F32_TOP 0x1.3f824cp-6f
#define TS_TANH_F32(X) \
    X(-0x1.b83aap-5f) \
    X(0x1.110c6ap-3f) \
    X(-0x1.55554ep-2f)

/* sin f32: error 3.6e-09 */
#define TS_SIN_F32_TOP 0x1.6cb802p-19f
#define TS_SIN_F32(X) \
    X(-0x1.a00f12p-13f) \
    X(0x1.111108p-7f) \
    X(-0x1.555556p-3f)

/* cos f32: error 8.1e-10 */
#define TS_COS_F32_TOP 0x1.99cb82p-16f
#define TS_COS_F32(X) \
    X(-0x1.6c0bc4p-10f) \
    X(0x1.55554ap-5f)

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

/* tanh f64: error 8.2e-18 */
#define TS_TANH_F64_TOP 0x1.f578c50561bb7p-12
#define TS_TANH_F64(X) \
    X(-0x1.77784c6bac2abp-10) \
    X(0x1.d67892c221908p-9) \
    X(-0x1.226caa958cdc4p-7) \
    X(0x1.664f40b36df4cp-6) \
    X(-0x1.ba1ba1a42bfdep-5) \
    X(0x1.111111110224cp-3) \
    X(-0x1.55555555554e6p-2)

/* sin f64: error 6.2e-18 */
#define TS_SIN_F64_TOP -0x1.aa8e6cf13c516p-41
#define TS_SIN_F64(X) \
    X(0x1.6120646f47a2p-33) \
    X(-0x1.ae64524f47c6ep-26) \
    X(0x1.71de3a53010dbp-19) \
    X(-0x1.a01a01a018826p-13) \
    X(0x1.111111111110ap-7) \
    X(-0x1.5555555555555p-3)

/* cos f64: error 1.2e-18 */
#define TS_COS_F64_TOP 0x1.aaa9a3231eaap-45
#define TS_COS_F64(X) \
    X(-0x1.9392f89f4624cp-37) \
    X(0x1.1eed8c6a1a565p-29) \
    X(-0x1.27e4fb75c8d31p-22) \
    X(0x1.a01a01a018abfp-16) \
    X(-0x1.6c16c16c16c0ep-10) \
    X(0x1.5555555555555p-5)

/* pi / 2 in parts of 24, 24, 24 bits */
#define TS_QUARTER_F32_1 0x1.921fb6p+0f
#define TS_QUARTER_F32_2 -0x1.777a5cp-25f
#define TS_QUARTER_F32_3 -0x1.ee59dap-50f

/* pi / 2 in parts of 53, 53, 53 bits */
#define TS_QUARTER_F64_1 0x1.921fb54442d18p+0
#define TS_QUARTER_F64_2 0x1.1a62633145c07p-54
#define TS_QUARTER_F64_3 -0x1.f1976b7ed8fbcp-110

/* pi / 2 in parts of 33, 53 bits */
#define TS_QUARTER_F32_V2_1 0x1.921fb544p+0
#define TS_QUARTER_F32_V2_2 0x1.0b4611a626331p-34

/* pi / 2 in parts of 37, 37, 53 bits */
#define TS_QUARTER_F64_V2_1 0x1.921fb5444p+0
#define TS_QUARTER_F64_V2_2 0x1.68c234c4cp-39
#define TS_QUARTER_F64_V2_3 0x1.98a2e03707345p-77

#define TS_TWO_OVER_PI 0x1.45f306dc9c883p-1

/* 2 / pi, bits after the point; a word of zeros before */
#define TS_INVERSE_QUARTER \
    0, \
    0xA2F9836E4E441529, \
    0xFC2757D1F534DDC0, \
    0xDB6295993C439041, \
    0xFE5163ABDEBBC561, \
    0xB7246E3A424DD2E0, \
    0x06492EEA09D1921C, \
    0xFE1DEB1CB129A73E, \
    0xE88235F52EBB4484, \
    0xE99C7026B45F7E41, \
    0x3991D639835339F4, \
    0x9C845F8BBDF9283B, \
    0x1FF897FFDE05980F, \
    0xEF2F118B5A0A6D1F, \
    0x6D367ECF27CB09B7, \
    0x4F463F669E5FEA2D, \
    0x7527BAC7EBE5F17B, \
    0x3D0739F78A5292EA, \
    0x6BFB5FB11F8D5D08, \
    0x56033046FC7B6BAB
