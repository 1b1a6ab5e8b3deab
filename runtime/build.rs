//! Compiles the part of the interface of NIFs that is C, and has programs export the interface's functions.

fn main() {
    println!("cargo::rerun-if-changed=src/nif/support.c");
    cc::Build::new()
        .file("src/nif/support.c")
        .flag("-std=gnu11")
        .extra_warnings(true)
        .compile("beamline_nif_support");
    // For tests of this crate; `profiler/build.rs` does the same for the program.
    println!("cargo::rerun-if-changed=exports.rs");
    for names in include!("exports.rs") {
        println!("cargo::rustc-link-arg=-Wl,--export-dynamic-symbol={names}");
    }
}
