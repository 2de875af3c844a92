//! A debug binary has a million addresses that the loader would have to relocate at each start, a fifth of the time of
//! its tests: on Linux it is linked to a fixed address instead.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|is| is == value);
    if is("PROFILE", "debug") && is("CARGO_CFG_TARGET_OS", "linux") && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo::rustc-link-arg-bin=trackway=-no-pie");
    }
}
