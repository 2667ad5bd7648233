//! Checkpoints and records that were edited anywhere, under right checksums: training goes on or says why not.
#![no_main]

libfuzzer_sys::fuzz_target!(|edits: &[u8]| ramp_fuzz::checkpoint::resume_edited(edits));
