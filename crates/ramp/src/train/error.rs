//! What can be wrong with training: settings, data that do not suit them, checkpoints of other runs; and that someone stopped it.

use std::path::PathBuf;

/// What went wrong with training, or who ended it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrainError {
    /// An observer stopped training. The state is in the checkpoint, if checkpoints are kept; the model has its best weights so
    /// far, the last ones if no samples are held out.
    #[error("training was stopped after iteration {iteration} of {iterations}")]
    Interrupted {
        /// Steps taken.
        iteration: usize,
        /// Steps asked for.
        iterations: usize,
    },
    /// Training ran into numbers that are not finite. The model has its best weights so far, if samples are held out and one
    /// evaluation came before; the last checkpoint stays, marked, so that going on from it is refused.
    #[error(
        "training diverged at iteration {iteration}: {what}; {}, clip the gradient, or look for extreme values in the data",
        rate_advice(*learning_rate)
    )]
    Diverged {
        /// What went astray, with the node's name: what is not finite, or how far the free energy fell.
        what: String,
        /// The step that could not be taken, from 1.
        iteration: usize,
        /// The learning rate that was asked for.
        learning_rate: f64,
        /// The iteration of the best weights, which the model now has.
        best: Option<usize>,
    },
    /// Training ended clearly worse than it began.
    #[error(
        "training diverged: the free energy fell from {from:.2} to {to:.2} nats; {}",
        rate_advice(*learning_rate)
    )]
    Fell {
        /// The value before the first step.
        from: f64,
        /// The best on held-out samples, or the last ones without any.
        to: f64,
        /// The learning rate that was asked for.
        learning_rate: f64,
    },
    /// A setting that must be above zero.
    #[error("{name} must be a positive number, not {value}")]
    NotPositive {
        /// The setting.
        name: &'static str,
        /// What it is.
        value: f64,
    },
    /// A count that must not be zero.
    #[error("{name} must be at least 1, not 0")]
    Zero {
        /// The setting.
        name: &'static str,
    },
    /// A share of samples that leaves too few.
    #[error("{name} must be a fraction from 0 up to 0.95, not {value}")]
    Fraction {
        /// The setting.
        name: &'static str,
        /// What it is.
        value: f64,
    },
    /// Two shares that leave too few together.
    #[error(
        "holdout {holdout} and validation {validation} leave too little to learn from; together they must stay below 0.95"
    )]
    FewLeft {
        /// The share held out.
        holdout: f64,
        /// The share that chooses.
        validation: f64,
    },
    /// A chance of masking that leaves too little.
    #[error("mask must be a chance from 0 up to 0.95, not {value}")]
    Mask {
        /// What it is.
        value: f64,
    },
    /// A spread of noise that is none.
    #[error("noise must be a number from 0 up, not {value}")]
    Noise {
        /// What it is.
        value: f64,
    },
    /// Spans too short to mask as much as is asked for.
    #[error(
        "mask_span must be a number from {least:.3} up to have a chance of {mask} in all, not {value}"
    )]
    MaskSpan {
        /// The shortest mean length.
        least: f64,
        /// The chance of masking.
        mask: f64,
        /// The mean length that was asked for.
        value: f64,
    },
    /// Early stopping without samples to judge by.
    #[error("patience needs validation samples; set validation to a fraction such as 0.1")]
    PatienceWithoutValidation,
    /// The end of a cosine that is no fraction.
    #[error("the cosine decay's `to` must be between 0 and 1, not {value}")]
    CosineTo {
        /// What it is.
        value: f64,
    },
    /// Weights that would grow.
    #[error("the weight decay must not be negative, but is {value}")]
    WeightDecay {
        /// What it is.
        value: f64,
    },
    /// Momentum that would not settle.
    #[error("momentum must be from 0 up to 1, not {value}")]
    Momentum {
        /// What it is.
        value: f64,
    },
    /// Too few samples for the share that is held out.
    #[error(
        "{name} {share} of {samples} samples leaves nothing to train on or nothing to judge by"
    )]
    NothingLeft {
        /// The setting.
        name: &'static str,
        /// The share of samples that are not learned from.
        share: f64,
        /// All samples.
        samples: usize,
    },
    /// More samples in a batch than there are.
    #[error(
        "a batch of {batch} is larger than the {samples} training samples; make it smaller or leave it out for all"
    )]
    BatchTooLarge {
        /// The batch.
        batch: usize,
        /// Training samples.
        samples: usize,
    },
    /// The system gave no threads.
    #[error("cannot start {threads} threads: {source}")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// What the system said.
        source: rayon::ThreadPoolBuildError,
    },
    /// Ranks that were not given the same.
    #[error(
        "rank {rank} has {what} than rank 0; start all ranks with the same files and the same version of this software"
    )]
    RanksDiffer {
        /// The first rank that differs.
        rank: usize,
        /// What it has, such as "other data".
        what: &'static str,
    },
    /// Ranks whose weights drifted apart.
    #[error(
        "the ranks no longer have the same weights, as can be where processors differ; --resume goes on from the last checkpoint, on machines of one kind"
    )]
    WeightsDiffer,
    /// Data that is dealt to other ranks than those that train.
    #[error(
        "the data is dealt to other ranks than those that train; give Trainer::ranks those that Dealt::new was given"
    )]
    DealtToOthers,
    /// Another rank could not go on, and has said why.
    #[error("another rank could not go on, and says why")]
    RankFailed,
    /// The model cannot be described in a checkpoint.
    #[error("the model's description cannot be written: {0}")]
    Description(serde_json::Error),
    /// A checkpoint that is not this run's or not whole.
    #[error("checkpoint `{}` {fault}", path.display())]
    Checkpoint {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: CheckpointFault,
    },
}

/// What to do about a learning rate with which training diverged.
fn rate_advice(rate: f64) -> String {
    match rate > 0.1 {
        true if rate >= 1e6 => {
            format!("a learning rate of {rate:e} is too high, so take one such as 0.01")
        }
        true => format!("a learning rate of {rate} is too high, so take one such as 0.01"),
        false => format!("lower the learning rate of {rate} to a tenth"),
    }
}

/// What is wrong with a checkpoint.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CheckpointFault {
    /// Its description does not parse.
    #[error("has a header that cannot be read: {0}")]
    Header(serde_json::Error),
    /// Another form of the file.
    #[error("was written by a newer version of this software (form {0}); go on with that")]
    Newer(u32),
    /// A form that is no longer read.
    #[error(
        "was written by an older version of this software (form {0}); go on with that or train into a new folder"
    )]
    Older(u32),
    /// More or fewer samples.
    #[error("was made with {then} samples but the data now has {now}")]
    Samples {
        /// When it was written.
        then: usize,
        /// Now.
        now: usize,
    },
    /// Other settings of training.
    #[error("was made with other training settings; restore them or train into a new folder")]
    Settings,
    /// Other numbers in the data.
    #[error(
        "was made with other data, or with data read in another way; restore that or train into a new folder"
    )]
    Data,
    /// Another model.
    #[error("belongs to another model; train into a new folder or restore the model's settings")]
    Model,
    /// An array of the wrong length.
    #[error("has {found} numbers in `{array}` where the model has {wanted}")]
    Length {
        /// The array.
        array: &'static str,
        /// How long it is.
        found: usize,
        /// How long it should be.
        wanted: usize,
    },
    /// An array that is not there.
    #[error("lacks `{0}`")]
    Lacks(&'static str),
    /// Training from it led to numbers that are not finite.
    #[error(
        "is of a training that diverged at iteration {iteration}, and would again; {}, and start anew",
        rate_advice(*learning_rate)
    )]
    Diverged {
        /// The step that could not be taken.
        iteration: usize,
        /// The learning rate.
        learning_rate: f64,
    },
    /// Records that are not those that it was written with.
    #[error(
        "does not belong to the records beside it: records.jsonl was changed or damaged; restore it or train into a new folder"
    )]
    RecordsChanged,
    /// Records that end before the checkpoint.
    #[error(
        "is of iteration {iteration} but the records beside it end at {records}; restore records.jsonl or train into a new folder"
    )]
    Records {
        /// The checkpoint's iteration.
        iteration: usize,
        /// The last record's.
        records: usize,
    },
}
