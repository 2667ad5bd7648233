//! Run folders whose description was edited anywhere, under right checksums.
#![no_main]

libfuzzer_sys::fuzz_target!(|edits: &[u8]| ramp_fuzz::run::open_edited(edits));
