//! A sentence where memory runs out, in place of an abort.

use std::alloc::{GlobalAlloc, Layout, System};

/// The system's memory. Where it has no more, the process ends with a sentence and exit code 1; files under way are removed at the
/// next start, and all others are whole.
struct Bounded;

#[global_allocator]
static MEMORY: Bounded = Bounded;

/// Writes to the error stream past all buffers and locks, which others may hold.
#[cfg(unix)]
fn say(text: &[u8]) {
    // SAFETY: the bytes are there, and as many as is said.
    let _ = unsafe { libc::write(2, text.as_ptr().cast(), text.len()) };
}

#[cfg(not(unix))]
fn say(text: &[u8]) {
    let _ = std::io::Write::write_all(&mut std::io::stderr(), text);
}

/// Ends the process at once: no other thread goes on with what it lacks memory for.
fn end() -> ! {
    #[cfg(unix)]
    // SAFETY: it takes nothing and does not return.
    unsafe {
        libc::_exit(1)
    }
    #[cfg(not(unix))]
    std::process::exit(1)
}

/// Passes on what the system gave, if it gave something.
fn given(memory: *mut u8, bytes: usize) -> *mut u8 {
    if memory.is_null() {
        // Nothing here may ask for memory.
        let megabytes = bytes >> 20;
        let mut digits = [b'0'; 20];
        let (mut at, mut left) = (digits.len(), megabytes);
        while at > 0 && (left > 0 || at == digits.len()) {
            at -= 1;
            digits[at] = b'0' + (left % 10) as u8;
            left /= 10;
        }
        say(b"ramp: the machine has no more memory: ");
        say(&digits[at..]);
        say(b" MB more were needed; take fewer rows, a smaller batch or smaller networks\n");
        end();
    }
    memory
}

// SAFETY: every call is the system allocator's, with the same arguments; what it gives is passed on unchanged.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        given(unsafe { System.alloc(layout) }, layout.size())
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        given(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        unsafe { System.dealloc(memory, layout) }
    }

    unsafe fn realloc(&self, memory: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        given(unsafe { System.realloc(memory, layout, size) }, size)
    }
}
