/* Written by `python -m build_tools.more_polynomials`, which says what each polynomial stands for.
   The macros are as in ts_math_coefficients.h. */

/* exp2 f32: error 2.3e-09 */
#define TS_EXP2_F32_TOP 0x1.fde5fp-17f
#define TS_EXP2_F32(X) \
    X(0x1.445c84p-13f) \
    X(0x1.5d8a86p-10f) \
    X(0x1.3b29f4p-7f) \
    X(0x1.c6b08ap-5f) \
    X(0x1.ebfbep-3f) \
    X(0x1.62e43p-1f)

/* sinh f32: error 4.8e-10 */
#define TS_SINH_F32_TOP 0x1.a16f8ap-13f
#define TS_SINH_F32(X) \
    X(0x1.1110b2p-7f) \
    X(0x1.555556p-3f)

/* cosh f32: error 1.0e-10 */
#define TS_COSH_F32_TOP 0x1.6d4eeap-10f
#define TS_COSH_F32(X) \
    X(0x1.5554e6p-5f)

/* tan f32: error 2.5e-08 */
#define TS_TAN_F32_TOP 0x1.3a45fcp-7f
#define TS_TAN_F32(X) \
    X(0x1.6bcb2cp-9f) \
    X(0x1.93bffap-6f) \
    X(0x1.b50fcap-5f) \
    X(0x1.11316cp-3f) \
    X(0x1.5554ccp-2f)

/* atan f32: error 2.7e-08 */
#define TS_ATAN_F32_TOP 0x1.23fa0cp-10f
#define TS_ATAN_F32(X) \
    X(-0x1.df981cp-8f) \
    X(0x1.714bacp-6f) \
    X(-0x1.6e19f6p-5f) \
    X(0x1.1422e6p-4f) \
    X(-0x1.68e70cp-4f) \
    X(0x1.c4f1e4p-4f) \
    X(-0x1.247374p-3f) \
    X(0x1.9997ep-3f) \
    X(-0x1.555552p-2f)

/* asin f32: error 1.0e-09 */
#define TS_ASIN_F32_TOP 0x1.33558cp-5f
#define TS_ASIN_F32(X) \
    X(0x1.d92034p-7f) \
    X(0x1.049198p-5f) \
    X(0x1.6caed4p-5f) \
    X(0x1.33387cp-4f) \
    X(0x1.55554cp-3f)

/* asinh f32: error 1.0e-09 */
#define TS_ASINH_F32_TOP 0x1.2c688cp-7f
#define TS_ASINH_F32(X) \
    X(-0x1.475a34p-6f) \
    X(0x1.ebbb78p-6f) \
    X(-0x1.6d78c4p-5f) \
    X(0x1.33320ap-4f) \
    X(-0x1.555554p-3f)

/* atanh f32: error 2.8e-09 */
#define TS_ATANH_F32_TOP 0x1.685498p-3f
#define TS_ATANH_F32(X) \
    X(0x1.91c44ap-6f) \
    X(0x1.a52ddp-4f) \
    X(0x1.c1373ep-4f) \
    X(0x1.24c232p-3f) \
    X(0x1.99982cp-3f) \
    X(0x1.555558p-2f)

/* cbrt f32: error 3.0e-03 */
#define TS_CBRT_F32_TOP -0x1.70543ap-8f
#define TS_CBRT_F32(X) \
    X(0x1.312ceep-4f) \
    X(-0x1.8e825cp-2f) \
    X(0x1.06f736p+0f) \
    X(-0x1.80e612p+0f) \
    X(0x1.cb95e8p+0f)

/* erfc f32: error 3.4e-08 */
#define TS_ERFC_F32_TOP 0x1.4b670ep-14f
#define TS_ERFC_F32(X) \
    X(0x1.782d3ep-14f) \
    X(-0x1.010cap-11f) \
    X(-0x1.e77ad6p-11f) \
    X(0x1.1e14aap-9f) \
    X(0x1.abb3dep-8f) \
    X(-0x1.dd025cp-7f) \
    X(-0x1.44e65ep-5f) \
    X(0x1.a13396p-3f) \
    X(-0x1.7a9db4p-2f) \
    X(0x1.1ba038p-2f)

/* erfinv f32: error 4.8e-09 */
#define TS_ERFINV_F32_TOP 0x1.c2a902p-4f
#define TS_ERFINV_F32(X) \
    X(0x1.5268dap-6f) \
    X(0x1.24cd28p-4f) \
    X(0x1.5fbbaep-4f) \
    X(0x1.054d9p-3f) \
    X(0x1.db29aap-3f) \
    X(-0x1.d203b6p-4f)

/* erfinv1 f32: error 2.0e-08 */
#define TS_ERFINV1_F32_TOP 0x1.52ed6ep-12f
#define TS_ERFINV1_F32(X) \
    X(-0x1.97dd7cp-11f) \
    X(0x1.1979fcp-10f) \
    X(-0x1.11f746p-10f) \
    X(-0x1.e171a2p-12f) \
    X(0x1.909a54p-8f) \
    X(-0x1.52adf8p-6f) \
    X(0x1.a595eap-5f) \
    X(-0x1.b3f7fcp-4f) \
    X(0x1.79236ap-3f) \
    X(-0x1.e4be28p-3f)

/* erfinv2 f32: error 9.6e-10 */
#define TS_ERFINV2_F32_TOP -0x1.5200ep-22f
#define TS_ERFINV2_F32(X) \
    X(0x1.2382e6p-19f) \
    X(-0x1.45751p-17f) \
    X(0x1.46800ap-15f) \
    X(-0x1.348a44p-13f) \
    X(0x1.136bc8p-11f) \
    X(-0x1.d23f3ap-10f) \
    X(0x1.754548p-8f) \
    X(-0x1.16d104p-6f) \
    X(0x1.75a4b4p-5f) \
    X(-0x1.857242p-4f)

/* lgamma f32: error 1.8e-08 */
#define TS_LGAMMA_F32_TOP 0x1.548ef6p-11f
#define TS_LGAMMA_F32(X) \
    X(0x1.fd1b12p-15f) \
    X(0x1.10f2e4p-10f) \
    X(-0x1.18a2e4p-9f) \
    X(0x1.467992p-8f) \
    X(-0x1.95cc94p-7f) \
    X(0x1.0e0db4p-5f) \
    X(-0x1.9ae65p-4f) \
    X(0x1.b0ee6p-2f)

/* stirling f32: error 1.3e-09 */
#define TS_STIRLING_F32_TOP 0x1.6be9cap-11f
#define TS_STIRLING_F32(X) \
    X(-0x1.6b5342p-9f) \
    X(0x1.555538p-4f)

/* sinpi f32: error 3.2e-10 */
#define TS_SINPI_F32_TOP -0x1.253a48p-9f
#define TS_SINPI_F32(X) \
    X(0x1.abe8eep-6f) \
    X(-0x1.86a6dep-3f) \
    X(0x1.9f9cacp-1f) \
    X(-0x1.a51a66p+0f)

/* exp2 f64: error 1.8e-17 */
#define TS_EXP2_F64_TOP 0x1.c2cea100e6569p-36
#define TS_EXP2_F64(X) \
    X(0x1.ea014e019a4f3p-32) \
    X(0x1.e4d06c6f8c0cfp-28) \
    X(0x1.b524dd55de6bfp-24) \
    X(0x1.62c021e26f98dp-20) \
    X(0x1.ffcbfc74d5c99p-17) \
    X(0x1.430912f883cf2p-13) \
    X(0x1.5d87fe78a26cap-10) \
    X(0x1.3b2ab6fba4e22p-7) \
    X(0x1.c6b08d704a0cfp-5) \
    X(0x1.ebfbdff82c58fp-3) \
    X(0x1.62e42fefa39efp-1)

/* sinh f64: error 1.1e-18 */
#define TS_SINH_F64_TOP 0x1.61d723f5d5c5ep-33
#define TS_SINH_F64(X) \
    X(0x1.ae641c7e90d27p-26) \
    X(0x1.71de3a5eadb29p-19) \
    X(0x1.a01a01a018838p-13) \
    X(0x1.1111111111113p-7) \
    X(0x1.5555555555555p-3)

/* cosh f64: error 4.4e-21 */
#define TS_COSH_F64_TOP 0x1.1f8b7afbbd64ep-29
#define TS_COSH_F64(X) \
    X(0x1.27e4cc4e5eaf4p-22) \
    X(0x1.a01a01ad63bc6p-16) \
    X(0x1.6c16c16c1504cp-10) \
    X(0x1.5555555555558p-5)

/* tan f64: error 2.6e-18 */
#define TS_TAN_F64_TOP 0x1.567e674d4b62ap-17
#define TS_TAN_F64(X) \
    X(-0x1.b611a71ab6b44p-16) \
    X(0x1.b727180f09a08p-15) \
    X(-0x1.f8da367037672p-16) \
    X(0x1.28c19e6217da3p-14) \
    X(0x1.56535037825e4p-14) \
    X(0x1.0063a58d44bf4p-12) \
    X(0x1.349f59e9319aep-11) \
    X(0x1.7db472d904d6bp-10) \
    X(0x1.d6d2b371b2e1dp-9) \
    X(0x1.226e3bc297e8bp-7) \
    X(0x1.664f485330693p-6) \
    X(0x1.ba1ba1baede64p-5) \
    X(0x1.111111111025fp-3) \
    X(0x1.5555555555561p-2)

/* atan f64: error 7.4e-18 */
#define TS_ATAN_F64_TOP 0x1.7cdf56258095p-18
#define TS_ATAN_F64(X) \
    X(-0x1.298cc8979a3e6p-14) \
    X(0x1.bad24f5f0f47p-12) \
    X(-0x1.a365cd02934a3p-10) \
    X(0x1.1d90e69c88653p-8) \
    X(-0x1.2c4c0b17dffccp-7) \
    X(0x1.00c679d021c3cp-6) \
    X(-0x1.7507b6cfbe601p-6) \
    X(0x1.dfa5628beb3fbp-6) \
    X(-0x1.1bdbb6eea4d4cp-5) \
    X(0x1.4047d055e493bp-5) \
    X(-0x1.61e2b61adb0b8p-5) \
    X(0x1.858622c44fe0ap-5) \
    X(-0x1.af0b5eef01607p-5) \
    X(0x1.e1dd5f7e16f76p-5) \
    X(-0x1.1110ccab65a14p-4) \
    X(0x1.3b13ab3b89e1bp-4) \
    X(-0x1.745d16e653a1fp-4) \
    X(0x1.c71c71c326c4p-4) \
    X(-0x1.24924924858b8p-3) \
    X(0x1.99999999996f8p-3) \
    X(-0x1.5555555555554p-2)

/* asin f64: error 1.4e-18 */
#define TS_ASIN_F64_TOP 0x1.1399a74e14cd7p-5
#define TS_ASIN_F64(X) \
    X(-0x1.ac673ba3deae6p-6) \
    X(0x1.96bc96d394b3cp-6) \
    X(0x1.65d5dd70d04c5p-11) \
    X(0x1.47ffc93ca8128p-7) \
    X(0x1.36c4d753c5143p-7) \
    X(0x1.7ba3f5e85d092p-7) \
    X(0x1.c980e67344c1cp-7) \
    X(0x1.1c4f854f17972p-6) \
    X(0x1.6e8b9af3451b7p-6) \
    X(0x1.f1c71ca832816p-6) \
    X(0x1.6db6db6d48be4p-5) \
    X(0x1.3333333333a3bp-4) \
    X(0x1.5555555555553p-3)

/* asinh f64: error 1.5e-18 */
#define TS_ASINH_F64_TOP 0x1.1e5f62bf56097p-10
#define TS_ASINH_F64(X) \
    X(-0x1.ac54a541e128dp-9) \
    X(0x1.622d6a27d62f3p-8) \
    X(-0x1.cad7eb71848afp-8) \
    X(0x1.10be801c1401bp-7) \
    X(-0x1.3f86b2c6a9cafp-7) \
    X(0x1.7a7d908fbec53p-7) \
    X(-0x1.c998c8402e5b8p-7) \
    X(0x1.1c4ebed7da9b3p-6) \
    X(-0x1.6e8ba2aad48b4p-6) \
    X(0x1.f1c71c702e2e4p-6) \
    X(-0x1.6db6db6db3b9p-5) \
    X(0x1.3333333333301p-4) \
    X(-0x1.5555555555555p-3)

/* atanh f64: error 2.8e-19 */
#define TS_ATANH_F64_TOP 0x1.08954a521b2b1p-2
#define TS_ATANH_F64(X) \
    X(-0x1.f1c01952c1222p-3) \
    X(0x1.b22b1230b15d1p-3) \
    X(-0x1.e27ad042b4439p-6) \
    X(0x1.fe953eb31ccfp-5) \
    X(0x1.68475eac566a4p-5) \
    X(0x1.b354536bfc7c2p-5) \
    X(0x1.e1752f6effep-5) \
    X(0x1.11150fd4353dep-4) \
    X(0x1.3b137bf3e54b1p-4) \
    X(0x1.745d192cdb2ffp-4) \
    X(0x1.c71c71bbd070bp-4) \
    X(0x1.24924924a638dp-3) \
    X(0x1.999999999976p-3) \
    X(0x1.5555555555556p-2)

/* cbrt f64: error 1.3e-03 */
#define TS_CBRT_F64_TOP 0x1.674a68cd7082fp-9
#define TS_CBRT_F64(X) \
    X(-0x1.5af62eb5f9531p-5) \
    X(0x1.116313e5ad5e5p-2) \
    X(-0x1.c64dcc0fceac5p-1) \
    X(0x1.b02e1c6f75f38p+0) \
    X(-0x1.ec264c14e9b6bp+0) \
    X(0x1.e4996ab4e3cbcp+0)

/* erfc f64: error 4.7e-17 */
#define TS_ERFC_F64_TOP 0x1.45a9a3e75fdc3p-30
#define TS_ERFC_F64(X) \
    X(0x1.eadc37796dacfp-32) \
    X(-0x1.f36cb8ad7295ap-27) \
    X(-0x1.8518a31a6da8dp-29) \
    X(0x1.e67fd05e9b883p-24) \
    X(-0x1.5129140bda45bp-25) \
    X(-0x1.a671e49c1edb3p-21) \
    X(0x1.223103718e61ap-20) \
    X(0x1.36a9fa59f6fc8p-18) \
    X(-0x1.09f15aa1abfd4p-16) \
    X(-0x1.1ed34718ea53bp-17) \
    X(0x1.4dcd9f11a8ff2p-13) \
    X(-0x1.77d659cf4443dp-12) \
    X(-0x1.a2bede8ffa2ep-12) \
    X(0x1.63f260560c7e2p-8) \
    X(-0x1.625ed09848fb5p-6) \
    X(0x1.e1a95642ff551p-5) \
    X(-0x1.00428c8fe9edcp-3) \
    X(0x1.c0398cb6f1c8dp-3) \
    X(-0x1.47938f4c730cdp-2) \
    X(0x1.8d4ecb405c5fap-2) \
    X(-0x1.7d8f1c4524743p-2) \
    X(0x1.dd2c8b74febf6p-3)

/* erfinv f64: error 4.4e-18 */
#define TS_ERFINV_F64_TOP 0x1.60e7134fbc7a4p-3
#define TS_ERFINV_F64(X) \
    X(-0x1.a3e2976d7a2fcp-3) \
    X(0x1.6fb2681698fdep-3) \
    X(-0x1.aa5206d5d9e8ap-5) \
    X(0x1.70df39e5b149ap-5) \
    X(0x1.49636c268f17dp-6) \
    X(0x1.d73dece5192c4p-6) \
    X(0x1.02daf3da56b69p-5) \
    X(0x1.2aca79fe34c98p-5) \
    X(0x1.5eea2b7c786cep-5) \
    X(0x1.a7c86670f1187p-5) \
    X(0x1.0a13187a7183fp-4) \
    X(0x1.62847c486a746p-4) \
    X(0x1.053c2c0ab8836p-3) \
    X(0x1.db29fb2fee5ecp-3) \
    X(-0x1.d203b725884abp-4)

/* erfinv1 f64: error 2.2e-17 */
#define TS_ERFINV1_F64_TOP -0x1.28e0317b5a679p-20
#define TS_ERFINV1_F64(X) \
    X(0x1.a64a872f91085p-19) \
    X(-0x1.1e0f5c59b67c8p-18) \
    X(0x1.c7ec69f7cc9cdp-19) \
    X(0x1.72f019db0cdcep-20) \
    X(-0x1.d941fb3d98e18p-17) \
    X(0x1.3db8dba5b73f1p-15) \
    X(-0x1.251f7659985f6p-14) \
    X(0x1.87ca96dd6493cp-14) \
    X(-0x1.15293a07ae945p-14) \
    X(-0x1.78fd6c2acc981p-14) \
    X(0x1.f79b72b099d58p-12) \
    X(-0x1.3657019f83058p-10) \
    X(0x1.1304e0ebf0139p-9) \
    X(-0x1.572a88fbc05dap-9) \
    X(0x1.1c9281c5a9e9p-10) \
    X(0x1.870d66ed12aaep-8) \
    X(-0x1.918999702e04cp-6) \
    X(0x1.0111b4dcd5949p-4) \
    X(-0x1.05b91c9bb824p-3) \
    X(0x1.b4ebc5dfbb8e1p-3) \
    X(-0x1.0bc0fac07b63ap-2)

/* erfinv2 f64: error 3.2e-18 */
#define TS_ERFINV2_F64_TOP -0x1.ce7aec1d31fb1p-37
#define TS_ERFINV2_F64(X) \
    X(0x1.7dfc3b157ed83p-35) \
    X(-0x1.8e172c20b4c7p-35) \
    X(-0x1.ddd6041347d63p-35) \
    X(0x1.0ea987aa1a829p-31) \
    X(-0x1.307309d11b1e3p-29) \
    X(0x1.14d9e9d68312ep-27) \
    X(-0x1.b6376ff745c9dp-26) \
    X(0x1.371a176fa6e84p-24) \
    X(-0x1.8cd5139823569p-23) \
    X(0x1.b96cb9b0d976ep-22) \
    X(-0x1.80cb25c659e74p-21) \
    X(0x1.08cbc63bf623cp-21) \
    X(0x1.c627750cdba7cp-19) \
    X(-0x1.8702af8d25884p-16) \
    X(0x1.ad9d987f6b9b6p-14) \
    X(-0x1.8caf656912359p-12) \
    X(0x1.49e4df67ae584p-10) \
    X(-0x1.fab56bd19dc96p-9) \
    X(0x1.69bbb3e10019dp-7) \
    X(-0x1.dc056197f1a06p-6) \
    X(0x1.167898ad6d6f2p-4) \
    X(-0x1.f7bb96455fb34p-4)

/* erfinv3 f64: error 4.5e-18 */
#define TS_ERFINV3_F64_TOP 0x1.e516b40d22c5dp-59
#define TS_ERFINV3_F64(X) \
    X(-0x1.06543ac0d9b91p-55) \
    X(0x1.ff408e1e598abp-54) \
    X(-0x1.86b92ae950b6ap-52) \
    X(0x1.6382cb159e951p-50) \
    X(-0x1.3f9631d5c5a63p-48) \
    X(0x1.926f308690cfp-47) \
    X(0x1.242b386cea11dp-51) \
    X(-0x1.29e6ebdc0b7ebp-42) \
    X(0x1.6321802bc6d95p-39) \
    X(-0x1.3c7a2f2b4d258p-36) \
    X(0x1.f1b46acc7d0a2p-34) \
    X(-0x1.6bddcb32950e2p-31) \
    X(0x1.fa49aeb5a771ep-29) \
    X(-0x1.5340bbebc72c8p-26) \
    X(0x1.b8e2acb7d9a86p-24) \
    X(-0x1.16ddb4e86d6ep-21) \
    X(0x1.5803f0d5cf64bp-19) \
    X(-0x1.9de9c959c81cfp-17) \
    X(0x1.e4f0a3e7d0dcdp-15) \
    X(-0x1.137ee9e77a4e6p-12) \
    X(0x1.2d0a27fc50f6bp-10) \
    X(-0x1.36dfcb80a3e08p-8) \
    X(0x1.22c1bf6c2f7d8p-6) \
    X(-0x1.a97c2a60e6231p-5)

/* lgamma f64: error 1.7e-17 */
#define TS_LGAMMA_F64_TOP -0x1.c209307040d8dp-21
#define TS_LGAMMA_F64(X) \
    X(-0x1.4c54390a1414ep-19) \
    X(-0x1.05c540f309474p-18) \
    X(-0x1.402a89e1bd323p-19) \
    X(-0x1.d861efc89775p-20) \
    X(0x1.07a0a4890bc5ap-19) \
    X(-0x1.e5db2a7f2e7b6p-19) \
    X(0x1.159c3e753ae75p-17) \
    X(-0x1.28837f49f4d8fp-16) \
    X(0x1.4020d458db427p-15) \
    X(-0x1.5c86eae4583b6p-14) \
    X(0x1.7ed75f6349ce4p-13) \
    X(-0x1.a96a3db709878p-12) \
    X(0x1.dfebcf4ef0a27p-11) \
    X(-0x1.145121fbe515dp-9) \
    X(0x1.47974853c0063p-8) \
    X(-0x1.95ce223a9b21fp-7) \
    X(0x1.0e0c9df2935p-5) \
    X(-0x1.9ae6509ea10a2p-4) \
    X(0x1.b0ee6072093cep-2)

/* stirling f64: error 1.3e-17 */
#define TS_STIRLING_F64_TOP 0x1.072bd4516ce9p-6
#define TS_STIRLING_F64(X) \
    X(-0x1.862dfe451adf5p-7) \
    X(0x1.443f2283f9a1dp-8) \
    X(-0x1.e0522887bab7fp-10) \
    X(0x1.b79373792409p-11) \
    X(-0x1.380865e0c3163p-11) \
    X(0x1.a019d7c943e1dp-11) \
    X(-0x1.6c16c157d742fp-9) \
    X(0x1.5555555554e22p-4)

/* sinpi f64: error 1.1e-17 */
#define TS_SINPI_F64_TOP -0x1.e75de5eaa5cc5p-28
#define TS_SINPI_F64(X) \
    X(0x1.0faa881a68bbfp-22) \
    X(-0x1.d424067bdd6bdp-18) \
    X(0x1.3747192a55361p-13) \
    X(-0x1.33816aa2f1ff5p-9) \
    X(0x1.ac6805cf31fd9p-6) \
    X(-0x1.86a8e4720db2cp-3) \
    X(0x1.9f9cb402bc46cp-1) \
    X(-0x1.a51a6625307d3p+0)

#define TS_INVLN2_F32_1 0x1.716p+0f
#define TS_INVLN2_F32_2 -0x1.7135a8p-13f
#define TS_INVLN10_F32_1 0x1.bccp-2f
#define TS_INVLN10_F32_2 -0x1.09d5b2p-15f
#define TS_LOG10_2_F32_1 0x1.344p-2f
#define TS_LOG10_2_F32_2 0x1.3509f8p-18f
#define TS_LN2_F32_1 0x1.62ep-1f
#define TS_LN2_F32_2 0x1.0bfbe8p-15f
#define TS_INVLN2_F64_1 0x1.715476p+0
#define TS_INVLN2_F64_2 0x1.4ae0bf85ddf44p-26
#define TS_INVLN10_F64_1 0x1.bcb7b2p-2
#define TS_INVLN10_F64_2 -0x1.5b235e39ab2a9p-27
#define TS_LOG10_2_F64_1 0x1.34413509f8p-2
#define TS_LOG10_2_F64_2 -0x1.80433b83b532ap-44
#define TS_LN2_F64_1 0x1.62e42fefa4p-1
#define TS_LN2_F64_2 -0x1.8432a1b0e2634p-43
