//! Arrow IPC files and streams from any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| ramp_fuzz::read("arrow", bytes));
