//! Text tables from any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ramp_fuzz::read("csv", bytes));
