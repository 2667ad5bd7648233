//! The processes that `mpirun` or `srun` started together: how they talk, which of them speaks, and how all of them end.

use crate::Failure;
use crate::output;
use ramp::collective::{Collective, Single};
use ramp::train::same_version;
use std::sync::Arc;

#[cfg(feature = "mpi")]
mod mpi_world;

/// The processes that run this command together; one, unless a launcher of MPI started more.
pub struct Ranks {
    all: Arc<dyn Collective>,
    #[cfg(feature = "mpi")]
    world: Option<Arc<mpi_world::World>>,
}

/// How a rank's work ended before its time.
pub enum Stopped {
    /// All ranks know, and this one has said why or need not.
    Together(Failure),
    /// The others may be waiting for this one.
    Alone(Failure),
}

impl<E: Into<Failure>> From<E> for Stopped {
    fn from(error: E) -> Self {
        Stopped::Alone(error.into())
    }
}

impl Ranks {
    /// Joins the ranks that were started together. Only rank 0 speaks from then on.
    pub fn join() -> Result<Self, Failure> {
        if launched() < 2 {
            return Ok(Ranks {
                all: Arc::new(Single),
                #[cfg(feature = "mpi")]
                world: None,
            });
        }
        #[cfg(feature = "mpi")]
        {
            let world = Arc::new(mpi_world::World::join()?);
            output::mute(world.rank() > 0);
            Ok(Ranks {
                all: world.clone(),
                world: Some(world),
            })
        }
        #[cfg(not(feature = "mpi"))]
        {
            // One of the processes says it for all.
            output::mute(!launched_first());
            Err(Failure::user(
                "this command was built without MPI and cannot train on several ranks; build one that can with: \
                 cargo build --release --features mpi",
            ))
        }
    }

    pub fn collective(&self) -> &Arc<dyn Collective> {
        &self.all
    }

    /// Makes sure that all ranks run the same command, before they say anything else to each other.
    pub fn greet(&self) -> Result<(), Stopped> {
        let own = format!("ramp {}", env!("CARGO_PKG_VERSION"));
        match same_version(&*self.all, &own) {
            Ok(()) => Ok(()),
            Err(error @ ramp::Error::Train(_)) => Err(Stopped::Together(error.into())),
            Err(error) => Err(error.into()),
        }
    }

    /// Whether this is the rank that reads checkpoints, writes and speaks.
    pub fn leads(&self) -> bool {
        self.all.rank() == 0
    }

    /// What each rank did on its own: all go on, or none does and the first that failed says why.
    pub fn together<T>(&self, outcome: Result<T, Failure>) -> Result<T, Stopped> {
        let ranks = &self.all;
        if ranks.ranks() == 1 {
            return Ok(outcome?);
        }
        let own = 2 * ranks.rank() as u64;
        let said = match &outcome {
            Ok(_) => 0,
            // Another says why.
            Err(failure) if failure.sentence.is_empty() => 1,
            Err(failure) => u64::MAX - own - u64::from(!failure.user),
        };
        let said = ranks.maximum(said).map_err(ramp::Error::from)?;
        match outcome {
            Ok(done) if said == 0 => Ok(done),
            Err(failure) if !failure.sentence.is_empty() && (u64::MAX - said) / 2 * 2 == own => {
                output::mute(false);
                Err(Stopped::Together(failure))
            }
            _ => Err(Stopped::Together(Failure {
                sentence: String::new(),
                user: said > 1 && (u64::MAX - said).is_multiple_of(2),
            })),
        }
    }

    /// Ends the command on all ranks, also where others still wait for this one.
    pub fn end<T>(self, outcome: Result<T, Stopped>) -> Result<T, Failure> {
        match outcome {
            Ok(done) => Ok(done),
            Err(Stopped::Together(mut failure)) => {
                // Now, while all are still here: a launcher ends the others as soon as one has ended with an error.
                if self.all.ranks() > 1 && !failure.sentence.is_empty() {
                    output::complain(&std::mem::take(&mut failure.sentence));
                }
                Err(failure)
            }
            Err(Stopped::Alone(failure)) => {
                #[cfg(feature = "mpi")]
                if let Some(world) = &self.world {
                    output::mute(false);
                    output::complain(&failure.sentence);
                    world.abort(if failure.user { 2 } else { 1 });
                }
                Err(failure)
            }
        }
    }
}

/// How many processes a launcher of MPI says that it started. In a batch script of Slurm outside of `srun` there is one, whatever the
/// allocation: only what `srun` and `mpirun` themselves set counts.
fn launched() -> usize {
    let number = |name: &str| std::env::var(name).ok()?.parse().ok();
    let own = ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"].iter();
    let mut sizes: Vec<usize> = own.filter_map(|name| number(name)).collect();
    if std::env::var_os("PMIX_RANK").is_some() {
        sizes.extend(number("SLURM_STEP_NUM_TASKS"));
    }
    sizes.into_iter().max().unwrap_or(1)
}

#[cfg(not(feature = "mpi"))]
fn launched_first() -> bool {
    let ranks = ["OMPI_COMM_WORLD_RANK", "PMI_RANK", "PMIX_RANK"].iter();
    let own = ranks.filter_map(|name| std::env::var(name).ok()).next();
    own.is_none_or(|rank| rank == "0")
}
