//! Run folders with any list of files: opened, and claimed for a new run.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ramp_fuzz::run::open_with_manifest(bytes));
