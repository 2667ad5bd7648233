//! Model files from any text: a result or a sentence, and what is read comes back from its resolved form.
#![no_main]

use ramp_io::ModelFile;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let Ok(file) = ModelFile::parse(text) else {
        return;
    };
    let _ = file.build_tree(3);
    if let Ok(train) = file.train_spec(500) {
        let resolved = file.resolved(&train).expect("what was read can be written");
        let again = ModelFile::parse(&resolved).expect("what was written can be read");
        assert_eq!(again.tree, file.tree);
        assert_eq!(again.latents, file.latents);
        assert_eq!(again.observations, file.observations);
        assert_eq!(again.train_spec(500).ok().as_ref(), Some(&train));
        // Networks that nobody named stand there by name, and stay.
        let twice = again
            .resolved(&train)
            .expect("what was read can be written");
        assert_eq!(twice, resolved);
    }
});
