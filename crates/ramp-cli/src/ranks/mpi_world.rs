//! MPI as the carrier of what ranks say.

use crate::Failure;
use ramp::collective::{Collective, CollectiveError};
use std::ffi::c_int;

// `mpi.c` beside this file.
unsafe extern "C" {
    fn ramp_mpi_start(rank: *mut c_int, ranks: *mut c_int) -> c_int;
    fn ramp_mpi_end();
    fn ramp_mpi_abort(code: c_int);
    fn ramp_mpi_all_gather(buffer: *mut u8, counts: *const c_int, starts: *const c_int);
    fn ramp_mpi_all_to_all(
        send: *const u8,
        send_counts: *const c_int,
        send_starts: *const c_int,
        receive: *mut u8,
        receive_counts: *const c_int,
        receive_starts: *const c_int,
    );
    fn ramp_mpi_broadcast(buffer: *mut u8, count: c_int);
    fn ramp_mpi_maximum(value: *mut u64);
}

/// All processes that were started together. MPI is started for calls from any thread, one at a time: the training loop makes its calls in one
/// fixed order, never two at once.
pub struct World {
    rank: usize,
    ranks: usize,
}

impl World {
    pub fn join() -> Result<Self, Failure> {
        let (mut rank, mut ranks) = (0, 0);
        // SAFETY: both places are there; MPI is started once, by the one command that this process runs.
        if unsafe { ramp_mpi_start(&mut rank, &mut ranks) } == 0 {
            return Err(Failure {
                sentence: "this MPI cannot be called from more than one thread; use one that was built with threads"
                    .into(),
                user: false,
            });
        }
        Ok(World {
            rank: rank as usize,
            ranks: ranks as usize,
        })
    }

    /// Ends all processes.
    pub fn abort(&self, code: i32) -> ! {
        // SAFETY: MPI was started.
        unsafe { ramp_mpi_abort(code) };
        std::process::exit(code)
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // The others would wait for ever for one that panics.
        if std::thread::panicking() {
            self.abort(101);
        }
        // SAFETY: MPI was started, and nothing calls it without a `World`.
        unsafe { ramp_mpi_end() };
    }
}

/// Sizes and places of parts as MPI counts them.
struct Parts {
    counts: Vec<c_int>,
    starts: Vec<c_int>,
}

impl Parts {
    fn new(buffer: &[u8], ends: &[usize], ranks: usize) -> Result<Self, CollectiveError> {
        // What follows hands these to C.
        assert!(ends.len() == ranks && ends.is_sorted() && ends.last() == Some(&buffer.len()));
        if c_int::try_from(buffer.len()).is_err() {
            return Err(CollectiveError::Carrier {
                reason: format!(
                    "{} bytes are more than MPI carries at once; make the batch smaller",
                    buffer.len()
                ),
            });
        }
        let starts = [&[0], &ends[..ranks - 1]].concat();
        let counts = ends.iter().zip(&starts);
        Ok(Parts {
            counts: counts.map(|(end, start)| (end - start) as c_int).collect(),
            starts: starts.iter().map(|&start| start as c_int).collect(),
        })
    }
}

impl Collective for World {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn all_gather(&self, buffer: &mut [u8], ends: &[usize]) -> Result<(), CollectiveError> {
        let Parts { counts, starts } = Parts::new(buffer, ends, self.ranks)?;
        if buffer.is_empty() {
            // All ranks know the sizes, so none calls.
            return Ok(());
        }
        // SAFETY: the parts are as many as there are ranks and lie within the buffer.
        unsafe { ramp_mpi_all_gather(buffer.as_mut_ptr(), counts.as_ptr(), starts.as_ptr()) };
        Ok(())
    }

    fn all_to_all(
        &self,
        send: &[u8],
        send_ends: &[usize],
        receive: &mut [u8],
        receive_ends: &[usize],
    ) -> Result<(), CollectiveError> {
        let from = Parts::new(send, send_ends, self.ranks)?;
        let to = Parts::new(receive, receive_ends, self.ranks)?;
        // Where nothing is sent or received, a buffer has no place, and what stands for one means something else to MPI.
        let mut nowhere = [0];
        let receive = match receive {
            [] => &mut nowhere[..],
            receive => receive,
        };
        let send = match send {
            [] => &[0][..],
            send => send,
        };
        // SAFETY: the parts are as many as there are ranks and lie within their buffers.
        unsafe {
            ramp_mpi_all_to_all(
                send.as_ptr(),
                from.counts.as_ptr(),
                from.starts.as_ptr(),
                receive.as_mut_ptr(),
                to.counts.as_ptr(),
                to.starts.as_ptr(),
            );
        }
        Ok(())
    }

    fn broadcast(&self, buffer: &mut [u8]) -> Result<(), CollectiveError> {
        for part in buffer.chunks_mut(1 << 30) {
            // SAFETY: the part is as long as is said.
            unsafe { ramp_mpi_broadcast(part.as_mut_ptr(), part.len() as c_int) };
        }
        Ok(())
    }

    fn maximum(&self, value: u64) -> Result<u64, CollectiveError> {
        let mut most = value;
        // SAFETY: the number is there.
        unsafe { ramp_mpi_maximum(&mut most) };
        Ok(most)
    }
}
