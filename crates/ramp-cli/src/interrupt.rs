//! Ctrl-C as a wish: the work stops after the current step and leaves a state to go on from.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

static PRESSED: AtomicUsize = AtomicUsize::new(0);

/// Listens for Ctrl-C (and a polite kill) from now on. A second one ends the process at once; what is on the disk stays
/// whole either way.
pub fn listen() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        // Without a handler Ctrl-C still ends the process between two atomic writes.
        let _ = ctrlc::set_handler(|| {
            if PRESSED.fetch_add(1, Ordering::Relaxed) > 0 {
                std::process::exit(130);
            }
        });
    });
}

/// Whether someone wishes to stop.
pub fn wished() -> bool {
    PRESSED.load(Ordering::Relaxed) > 0
}
