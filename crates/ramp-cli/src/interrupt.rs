//! Ctrl-C as a wish: the work stops after the current step and leaves a state to go on from.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

static PRESSED: AtomicUsize = AtomicUsize::new(0);

/// Listens for Ctrl-C (and a polite kill) from now on. A second one ends the process at once; what is on the disk stays
/// whole either way. A signal that this process was started to ignore, as by `nohup`, stays ignored.
pub fn listen() {
    static ONCE: OnceLock<()> = OnceLock::new();
    ONCE.get_or_init(|| {
        let ignored = ignored_signals();
        // Without a handler Ctrl-C still ends the process between two atomic writes.
        let _ = ctrlc::set_handler(|| {
            if PRESSED.fetch_add(1, Ordering::Relaxed) > 0 {
                std::process::exit(130);
            }
        });
        ignore(&ignored);
    });
}

/// Whether someone wishes to stop.
pub fn wished() -> bool {
    PRESSED.load(Ordering::Relaxed) > 0
}

/// Those of the signals that would be listened for that this process was started to ignore.
#[cfg(unix)]
fn ignored_signals() -> Vec<libc::c_int> {
    let ignores = |&signal: &libc::c_int| {
        // SAFETY: an action of zeros is one; the call writes into it and changes nothing.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            let asked = libc::sigaction(signal, std::ptr::null(), &mut action);
            asked == 0 && action.sa_sigaction == libc::SIG_IGN
        }
    };
    let signals = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];
    signals.into_iter().filter(ignores).collect()
}

#[cfg(unix)]
fn ignore(signals: &[libc::c_int]) {
    for &signal in signals {
        // SAFETY: ignoring a signal runs no code of ours.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

#[cfg(not(unix))]
fn ignored_signals() -> Vec<()> {
    vec![]
}

#[cfg(not(unix))]
fn ignore(_: &[()]) {}
