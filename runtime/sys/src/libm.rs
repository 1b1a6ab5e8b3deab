//! The C library's mathematical functions. The standard library has formulas of its own for some of them, whose last
//! digits differ.
#![expect(unsafe_code, reason = "declarations of foreign functions")]
#![expect(missing_docs, reason = "the names are the C library's")]

// SAFETY: the C library's own functions of floats; they touch no memory but `errno`.
unsafe extern "C" {
    pub safe fn cos(x: f64) -> f64;
    pub safe fn cosh(x: f64) -> f64;
    pub safe fn sin(x: f64) -> f64;
    pub safe fn sinh(x: f64) -> f64;
    pub safe fn tan(x: f64) -> f64;
    pub safe fn tanh(x: f64) -> f64;
    pub safe fn acos(x: f64) -> f64;
    pub safe fn acosh(x: f64) -> f64;
    pub safe fn asin(x: f64) -> f64;
    pub safe fn asinh(x: f64) -> f64;
    pub safe fn atan(x: f64) -> f64;
    pub safe fn atan2(y: f64, x: f64) -> f64;
    pub safe fn atanh(x: f64) -> f64;
    pub safe fn erf(x: f64) -> f64;
    pub safe fn erfc(x: f64) -> f64;
    pub safe fn exp(x: f64) -> f64;
    pub safe fn log(x: f64) -> f64;
    pub safe fn log2(x: f64) -> f64;
    pub safe fn log10(x: f64) -> f64;
    pub safe fn sqrt(x: f64) -> f64;
    pub safe fn pow(x: f64, y: f64) -> f64;
    pub safe fn fmod(x: f64, y: f64) -> f64;
    pub safe fn floor(x: f64) -> f64;
    pub safe fn ceil(x: f64) -> f64;
}
