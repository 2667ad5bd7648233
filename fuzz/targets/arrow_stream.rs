//! Arrow tables from any bytes all the way into samples, sequences among them.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ramp_fuzz::read_samples(bytes));
