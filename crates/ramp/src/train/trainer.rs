//! The loop: steps out, observers told, records and checkpoints written.

use super::checkpoint::{self, Best, Loaded, State, checkpoint_file};
use super::error::TrainError;
use super::free_energy::FreeEnergyProblem;
use super::observer::{Control, Event, Observer};
use super::optimizer::Memory;
use super::problem::{Group, Identity, Problem};
use super::ranks::{self, Beginning, together};
use super::records::{Record, RecordFile, Records};
use super::schedule::Schedule;
use super::spec::TrainSpec;
use super::stop::{Stop, enough};
use crate::collective::{Collective, Single};
use crate::data::Gather;
use crate::model::Model;
use crate::{Error, Result};
use std::path::PathBuf;

/// The outcome of training.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Fit {
    /// Why it ended.
    pub stop: Stop,
    /// Steps taken, earlier sessions' included.
    pub steps: usize,
    /// One record per step, earlier sessions' included; of more than 65,536 steps every second, fourth, …, and the last. The
    /// file beside the checkpoints has them all.
    pub records: Vec<Record>,
    /// The iteration whose weights the model now has.
    pub iteration: usize,
    /// Their held-out free energy, if samples were held out.
    pub held_out: Option<f64>,
    /// That of the weights that it began with, where [`measure_start`](Trainer::measure_start) asked for it.
    pub start: Option<f64>,
}

/// How far below its beginning, and below zero, a mean free energy may end. A model that ignores its data has zero.
const MOST_LOST: f64 = 1.0;
/// So many steps in a row, a free energy that low is no accident of a batch: training ends.
const LOST_STEPS: usize = 200;

/// Whether a mean free energy is clearly worse than it was at first.
pub(super) fn is_lost(first: f64, value: f64) -> bool {
    value < first - MOST_LOST && value < -MOST_LOST
}

impl Fit {
    /// What to say if a model's free energy ended clearly worse than it began: with a learning rate that is far too high, weights settle where
    /// nothing can be learned any more, and every number is finite.
    pub fn fell(&self, spec: &TrainSpec) -> Option<TrainError> {
        // A few steps prove nothing.
        let last = &self.records[self.records.len().checked_sub(10)?..];
        let mean = last.iter().map(|r| r.free_energy).sum::<f64>() / last.len() as f64;
        let (from, to) = (
            self.records.first()?.free_energy,
            self.held_out.unwrap_or(mean),
        );
        is_lost(from, to).then_some(TrainError::Fell {
            from,
            to,
            learning_rate: spec.learning_rate,
        })
    }
}

/// Trains models: settings, observers and checkpoints around one small loop.
///
/// The same settings and seed give the same weights, bit for bit, whatever the number of threads and of [`ranks`](Trainer::ranks) and however often
/// training was interrupted and resumed.
pub struct Trainer<'a, M: ?Sized = Model> {
    spec: TrainSpec,
    threads: Option<usize>,
    folder: Option<(PathBuf, usize)>,
    observers: Vec<Box<dyn Observer<M> + 'a>>,
    ranks: &'a dyn Collective,
    measure_start: bool,
    ends_at: Option<usize>,
}

impl Trainer<'_> {
    /// Trains a model by its free energy on a data set, or on one that is [`Dealt`](crate::data::Dealt) to the ranks that train. On an error its weights are
    /// those of the last good step, and the last checkpoint stays. Where validation samples choose the weights of a chain with Gaussian latents, a constant in its messages
    /// then makes the mean belief of the training samples the prior's mean.
    pub fn fit(&mut self, model: &mut Model, data: &dyn Gather) -> Result<Fit> {
        let mut problem = FreeEnergyProblem::new(model, data, &self.spec, self.ranks)?;
        let mut fit = self.train(&mut problem)?;
        // Weights that were chosen in the middle of a training have the zero of their iteration.
        if let Some(chosen) = fit.held_out {
            let pool = self.pool()?;
            fit.held_out = Some(on(&pool, || problem.centre(chosen))?);
        }
        Ok(fit)
    }
}

impl<'a, M: ?Sized> Trainer<'a, M> {
    /// A trainer with checked settings. Batch, mixture, masking and holdout are those of [`fit`](Trainer::fit); a problem of
    /// one's own has its own.
    pub fn new(spec: TrainSpec) -> Result<Self> {
        spec.check()?;
        Ok(Trainer {
            spec,
            threads: None,
            folder: None,
            observers: vec![],
            ranks: &Single,
            measure_start: false,
            ends_at: None,
        })
    }

    /// Trains together with other ranks, which all call this with the same model, data and settings, and all get the bits that one process
    /// gets. Checkpoints are read and written by rank 0 alone; whichever rank's observer stops the training stops all.
    ///
    /// ```
    /// use ramp::collective::Threads;
    /// use ramp::{data::Dataset, graph::FactorTree, model::Model, train::{TrainSpec, Trainer}};
    ///
    /// let numbers = |i: usize| (0..100).map(|n| ((n * (i + 3)) as f32).sin()).collect();
    /// let data = Dataset::new().observe("x", 1, numbers(0))?.observe("y", 1, numbers(1))?;
    /// let weights = |ranks: usize| -> Vec<Vec<f32>> {
    ///     std::thread::scope(|scope| {
    ///         let all = Threads::group(ranks).into_iter().map(|rank| scope.spawn({
    ///             let data = &data;
    ///             move || {
    ///                 let tree = FactorTree::from_newick("(x,y)z;")?;
    ///                 let mut model = Model::builder(tree).build(data)?;
    ///                 let spec = TrainSpec { iterations: 5, ..TrainSpec::default() };
    ///                 Trainer::new(spec)?.ranks(&rank).fit(&mut model, data)?;
    ///                 Ok::<_, ramp::Error>(model.parameters().to_vec())
    ///             }
    ///         }));
    ///         let all: Vec<_> = all.collect();
    ///         all.into_iter().map(|rank| rank.join().unwrap().unwrap()).collect()
    ///     })
    /// };
    /// assert_eq!(weights(2), [&weights(1)[..], &weights(1)[..]].concat());
    /// # Ok::<(), ramp::Error>(())
    /// ```
    #[must_use]
    pub fn ranks(mut self, ranks: &'a dyn Collective) -> Self {
        self.ranks = ranks;
        self
    }

    /// Uses this many threads; all of the machine's by default.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = Some(threads);
        self
    }

    /// Writes a checkpoint into a folder every so many iterations and at the end, and goes on from the one that is
    /// there.
    #[must_use]
    pub fn checkpoints(mut self, folder: impl Into<PathBuf>, every: usize) -> Self {
        self.folder = Some((folder.into(), every.max(1)));
        self
    }

    /// Adds someone who watches.
    #[must_use]
    pub fn observer(mut self, observer: impl Observer<M> + 'a) -> Self {
        self.observers.push(Box::new(observer));
        self
    }

    /// Measures the weights that training begins with on validation samples too: for a start that has learned from the data already. They are not among those that
    /// are kept; whoever wants them back has [`Fit::start`] to compare with.
    #[must_use]
    pub fn measure_start(mut self) -> Self {
        self.measure_start = true;
        self
    }

    /// Ends after this iteration, with its weights, whatever validation samples say: for a number of iterations that was chosen elsewhere. The schedule of the
    /// learning rate stays that of all iterations.
    #[must_use]
    pub fn ends_at(mut self, iteration: usize) -> Self {
        self.ends_at = Some(iteration);
        self
    }

    /// Trains anything. If an observer stops it, that is [`TrainError::Interrupted`].
    pub fn train<P: Problem<Model = M>>(&mut self, problem: &mut P) -> Result<Fit, P::Error> {
        let pool = self.pool()?;
        let (mut state, records, keeper) = self.open(problem)?;
        let mut session = Session {
            schedule: self.spec.schedule(),
            spec: &self.spec,
            observers: &mut self.observers,
            gradient: vec![0.0; problem.parameters().len()],
            groups: problem.groups(),
            pool,
            keeper,
            records,
            ranks: self.ranks,
            ends_at: self.ends_at,
        };
        let start = match self.measure_start && state.iteration == 0 {
            true => on(&session.pool, || problem.held_out())?,
            false => None,
        };
        let stop = match session.run(problem, &mut state) {
            Err(error) => {
                return Err(match P::not_finite(&error) {
                    None => error,
                    Some(what) => {
                        let what = format!("{what} is not finite");
                        let at = state.iteration + 1;
                        session.diverged(problem, &state, at, what)?.into()
                    }
                });
            }
            stop => stop?,
        };
        let records = session.records;
        let (mut iteration, mut held_out) = (state.iteration, None);
        // An interrupted run shows its best so far too; its checkpoint holds where to go on.
        if let Some(best) = state.best {
            problem.parameters_mut().copy_from_slice(&best.parameters);
            (iteration, held_out) = (best.iteration, Some(best.held_out));
        }
        let Some(stop) = stop else {
            return Err(Error::from(TrainError::Interrupted {
                iteration: records.steps(),
                iterations: self.spec.iterations,
            })
            .into());
        };
        Ok(Fit {
            stop,
            steps: records.steps(),
            records: records.into_vec(),
            iteration,
            held_out,
            start,
        })
    }

    /// The threads that the heavy calls enter: observers need not be `Send`.
    fn pool(&self) -> Result<Option<rayon::ThreadPool>> {
        match self.threads {
            // The common pool has as many already.
            Some(threads) if threads != rayon::current_num_threads() => {
                let pool = rayon::ThreadPoolBuilder::new()
                    .num_threads(threads)
                    // Without optimisation, one frame of the pairwise kernel takes more than a thread usually has.
                    .stack_size(16 << 20)
                    .build()
                    .map_err(|source| TrainError::Threads { threads, source })?;
                Ok(Some(pool))
            }
            _ => Ok(None),
        }
    }

    /// The state to go on from, which the problem is brought to, with its records.
    fn open<P: Problem>(
        &self,
        problem: &mut P,
    ) -> Result<(State, Records, Option<Keeper>), P::Error> {
        let (count, alone) = (problem.parameters().len(), self.ranks.ranks() == 1);
        let fresh = || Beginning {
            parameters: None,
            state: State {
                memory: Memory::new(count),
                best: None,
                iteration: 0,
                since_best: 0,
            },
            records: Records::with_room(self.spec.iterations),
        };
        if self.folder.is_none() && alone {
            let Beginning { state, records, .. } = fresh();
            return Ok((state, records, None));
        }
        let identity = problem.identity()?;
        if !alone {
            let settings = (&self.spec, self.ends_at, self.measure_start);
            ranks::compare(self.ranks, &identity, settings, problem.parameters())?;
        }
        let mut file = None;
        let mut begin = || -> Result<Beginning> {
            let Some((folder, _)) = self.folder.as_ref().filter(|_| self.ranks.rank() == 0) else {
                return Ok(fresh());
            };
            let path = checkpoint_file(folder);
            let loaded = checkpoint::load(&path, &identity, &self.spec, count)?;
            let (done, known) = match &loaded {
                None => (0, None),
                Some(loaded) => (loaded.state.iteration, Some(&loaded.records[..])),
            };
            let (opened, records) = RecordFile::open(folder, done, known)?;
            file = Some(opened);
            let mut beginning = fresh();
            if records.steps() > 0 {
                beginning.records = records;
            }
            if let Some(Loaded {
                parameters, state, ..
            }) = loaded
            {
                (beginning.parameters, beginning.state) = (Some(parameters), state);
            }
            Ok(beginning)
        };
        let beginning = match alone {
            true => begin()?,
            false => together(self.ranks, begin())?.share(self.ranks)?,
        };
        let Beginning {
            parameters,
            state,
            records,
        } = beginning;
        if let Some(parameters) = parameters {
            problem.parameters_mut().copy_from_slice(&parameters);
        }
        let keeper = self.folder.as_ref().map(|(folder, every)| Keeper {
            path: checkpoint_file(folder),
            every: *every,
            saved: state.iteration,
            identity,
            file,
        });
        Ok((state, records, keeper))
    }
}

/// Where the state goes.
struct Keeper {
    path: PathBuf,
    every: usize,
    /// The iteration of the last checkpoint.
    saved: usize,
    identity: Identity,
    /// Rank 0 writes; the others know when.
    file: Option<RecordFile>,
}

/// What one session of training has at hand; the memory of a step is reused from step to step.
struct Session<'s, 'a, M: ?Sized> {
    spec: &'s TrainSpec,
    schedule: Schedule,
    observers: &'s mut [Box<dyn Observer<M> + 'a>],
    gradient: Vec<f32>,
    groups: Vec<Group>,
    pool: Option<rayon::ThreadPool>,
    keeper: Option<Keeper>,
    records: Records,
    ranks: &'s dyn Collective,
    ends_at: Option<usize>,
}

impl<M: ?Sized> Session<'_, '_, M> {
    /// Takes the steps that are left; why it ended, or nothing if an observer ended it.
    fn run<P: Problem<Model = M>>(
        &mut self,
        problem: &mut P,
        state: &mut State,
    ) -> Result<Option<Stop>, P::Error> {
        let start = Event::Start {
            iteration: state.iteration,
            iterations: self.spec.iterations,
            model: problem.model(),
        };
        let control = self.notify(&start);
        let mut control = self.agree(control)?;
        let mut lost = 0;
        let stop = loop {
            // Who stops the last step stops nothing.
            if let Some(stop) = enough(self.spec, state.iteration, state.since_best, self.ends_at) {
                break Some(stop);
            }
            if control == Control::Stop {
                break None;
            }
            let _ = self.notify(&Event::Begin);
            let mut record = self.step(problem, state)?;
            self.evaluate(problem, state, &mut record)?;
            control = self.notify(&Event::Step {
                record: &record,
                model: problem.model(),
            });
            control = self.agree(control)?;
            let file = self.keeper.as_mut().and_then(|k| k.file.as_mut());
            if let Some(file) = file {
                file.append(&record)?;
            }
            let value = record.free_energy;
            self.records.push(record);
            let first = self.records.first().unwrap_or(value);
            lost = if problem.is_lost(first, value) {
                lost + 1
            } else {
                0
            };
            if lost == LOST_STEPS {
                let what = format!(
                    "the free energy fell from {first:.2} to {value:.2} nats and stays there"
                );
                let error = self.diverged(problem, state, state.iteration, what)?;
                return Err(error.into());
            }
            let every = self.keeper.as_ref().map_or(usize::MAX, |k| k.every);
            if state.iteration.is_multiple_of(every) {
                self.save(problem.parameters(), state)?;
            }
        };
        self.save(problem.parameters(), state)?;
        Ok(stop)
    }

    fn step<P: Problem>(&mut self, problem: &mut P, state: &mut State) -> Result<Record, P::Error> {
        let iteration = state.iteration;
        let gradient = &mut self.gradient;
        let value = on(&self.pool, || problem.step(iteration, gradient))?;
        let squares = self.gradient.iter().map(|&g| f64::from(g).powi(2));
        let norm = squares.sum::<f64>().sqrt();
        if let Some(clip) = self.spec.clip
            && norm > clip
        {
            let scale = (clip / norm) as f32;
            self.gradient.iter_mut().for_each(|g| *g *= scale);
        }
        let rate = self.schedule.rate(iteration);
        self.spec.optimizer.step(
            iteration + 1,
            (rate, rate / self.schedule.learning_rate),
            &self.gradient,
            &self.groups,
            problem.parameters_mut(),
            &mut state.memory,
        );
        state.iteration += 1;
        Ok(Record {
            iteration: state.iteration,
            free_energy: value,
            held_out: None,
            gradient_norm: norm,
            rate,
        })
    }

    /// Measures the held-out value where it is due, and keeps the best weights.
    fn evaluate<P: Problem>(
        &mut self,
        problem: &mut P,
        state: &mut State,
        record: &mut Record,
    ) -> Result<(), P::Error> {
        let done = state.iteration;
        if !done.is_multiple_of(self.spec.evaluate_every) && done != self.spec.iterations {
            return Ok(());
        }
        record.held_out = on(&self.pool, || problem.held_out())?;
        // Whoever chose the last iteration chose the weights.
        let (Some(value), None) = (record.held_out, self.ends_at) else {
            return Ok(());
        };
        state.since_best += 1;
        if state.best.as_ref().is_none_or(|b| value > b.held_out) {
            let best = state.best.get_or_insert_with(|| Best {
                parameters: problem.parameters().to_vec(),
                held_out: value,
                iteration: done,
            });
            best.parameters.copy_from_slice(problem.parameters());
            (best.held_out, best.iteration) = (value, done);
            state.since_best = 0;
        }
        Ok(())
    }

    /// Writes a checkpoint, unless the last one is of this iteration.
    fn save(&mut self, parameters: &[f32], state: &State) -> Result<()> {
        let Some(keeper) = &mut self.keeper else {
            return Ok(());
        };
        if keeper.saved == state.iteration {
            return Ok(());
        }
        if parameters.iter().any(|p| !p.is_finite()) {
            return Err(Error::NotFinite {
                what: "a weight".into(),
            });
        }
        ranks::compare_weights(self.ranks, parameters)?;
        keeper.saved = state.iteration;
        let Some(file) = &mut keeper.file else {
            return Ok(());
        };
        // First the records: a checkpoint never knows of steps that they lack.
        file.sync()?;
        checkpoint::save(
            &keeper.path,
            parameters,
            state,
            &keeper.identity,
            self.spec,
            file.checksum(),
        )?;
        let path = keeper.path.clone();
        let _ = self.notify(&Event::Checkpoint { path: &path });
        Ok(())
    }

    /// What is left of a training that went astray at an iteration: the best weights, and a note in the checkpoint.
    fn diverged<P: Problem<Model = M>>(
        &mut self,
        problem: &mut P,
        state: &State,
        iteration: usize,
        what: String,
    ) -> Result<Error> {
        if let Some(best) = &state.best {
            problem.parameters_mut().copy_from_slice(&best.parameters);
        }
        if let Some(keeper) = &mut self.keeper
            && let Some(file) = &mut keeper.file
        {
            file.sync()?;
            checkpoint::mark_diverged(&keeper.path, iteration)?;
        }
        Ok(Error::from(TrainError::Diverged {
            what,
            iteration,
            learning_rate: self.spec.learning_rate,
            best: state.best.as_ref().map(|b| b.iteration),
        }))
    }

    /// Whether any rank wishes to stop.
    fn agree(&self, control: Control) -> Result<Control> {
        if self.ranks.ranks() == 1 {
            return Ok(control);
        }
        Ok(
            match self.ranks.maximum(u64::from(control == Control::Stop))? {
                0 => Control::Continue,
                _ => Control::Stop,
            },
        )
    }

    fn notify(&mut self, event: &Event<'_, M>) -> Control {
        let mut control = Control::Continue;
        for observer in self.observers.iter_mut() {
            if observer.observe(event) == Control::Stop {
                control = Control::Stop;
            }
        }
        control
    }
}

/// Runs a piece of work on the chosen threads.
fn on<R: Send>(pool: &Option<rayon::ThreadPool>, work: impl FnOnce() -> R + Send) -> R {
    match pool {
        None => work(),
        Some(pool) => pool.install(work),
    }
}
