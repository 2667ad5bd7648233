//! Signals as a terminal sends them, wherever the tests themselves run.

/// Heeds Ctrl-C and hang-ups again. A shell's background jobs and `nohup` ignore them, commands inherit that and respect it, and
/// tests of Ctrl-C would wait for an answer that must not come.
pub fn heed() {
    #[cfg(unix)]
    for signal in [libc::SIGINT, libc::SIGHUP] {
        // SAFETY: the default action is no code of ours.
        unsafe { libc::signal(signal, libc::SIG_DFL) };
    }
}
