//! Single NumPy arrays from any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ramp_fuzz::read("npy", bytes));
