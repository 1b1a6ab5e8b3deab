//! The C library's mathematical functions: the standard library has formulas of its own for some of
//! them, whose last digits differ.
#![expect(unsafe_code, reason = "declarations of foreign functions")]

// SAFETY: the C library's own functions of floats; they touch no memory but `errno`.
unsafe extern "C" {
    pub(crate) safe fn cos(x: f64) -> f64;
    pub(crate) safe fn cosh(x: f64) -> f64;
    pub(crate) safe fn sin(x: f64) -> f64;
    pub(crate) safe fn sinh(x: f64) -> f64;
    pub(crate) safe fn tan(x: f64) -> f64;
    pub(crate) safe fn tanh(x: f64) -> f64;
    pub(crate) safe fn acos(x: f64) -> f64;
    pub(crate) safe fn acosh(x: f64) -> f64;
    pub(crate) safe fn asin(x: f64) -> f64;
    pub(crate) safe fn asinh(x: f64) -> f64;
    pub(crate) safe fn atan(x: f64) -> f64;
    pub(crate) safe fn atan2(y: f64, x: f64) -> f64;
    pub(crate) safe fn atanh(x: f64) -> f64;
    pub(crate) safe fn erf(x: f64) -> f64;
    pub(crate) safe fn erfc(x: f64) -> f64;
    pub(crate) safe fn exp(x: f64) -> f64;
    pub(crate) safe fn log(x: f64) -> f64;
    pub(crate) safe fn log2(x: f64) -> f64;
    pub(crate) safe fn log10(x: f64) -> f64;
    pub(crate) safe fn sqrt(x: f64) -> f64;
    pub(crate) safe fn pow(x: f64, y: f64) -> f64;
    pub(crate) safe fn fmod(x: f64, y: f64) -> f64;
    pub(crate) safe fn floor(x: f64) -> f64;
    pub(crate) safe fn ceil(x: f64) -> f64;
}
