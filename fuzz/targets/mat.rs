//! MAT files of poses from any bytes.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("joints.mat");
    std::fs::write(&path, bytes).expect("a temporary file");
    let _ = ramp_lab::experiments::pose::data::Poses::read(&path);
});
