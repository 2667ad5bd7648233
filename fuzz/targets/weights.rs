//! Files of weights from any bytes, past their checksum.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ramp_fuzz::read_weights(bytes));
