//! How a command ends: done, interrupted, or failed with a sentence and an exit code.

use ramp::storage::StorageError;
use ramp::train::{CheckpointFault, TrainError};
use ramp_io::model_file::ModelFileError;
use ramp_io::run::RunError;
use ramp_lab::error::LabError;
use std::process::ExitCode;

/// How a command ended when it did not fail.
pub enum Ending {
    Done,
    /// Ctrl-C: a state to go on from was left.
    Interrupted,
}

/// A failure: its sentence and whether the user can mend it.
pub struct Failure {
    pub sentence: String,
    pub user: bool,
}

impl Failure {
    /// A mistake that the user can mend.
    pub fn user(sentence: impl Into<String>) -> Self {
        Failure {
            sentence: sentence.into(),
            user: true,
        }
    }

    /// 2 is the user's mistake, 1 ours or the machine's.
    pub fn exit_code(&self) -> ExitCode {
        ExitCode::from(if self.user { 2 } else { 1 })
    }
}

/// Any error that a command may meet.
#[derive(Debug)]
pub enum AnyError {
    Engine(ramp::Error),
    Files(ramp_io::Error),
    Lab(LabError),
}

impl From<ramp::Error> for AnyError {
    fn from(error: ramp::Error) -> Self {
        AnyError::Engine(error)
    }
}

impl From<StorageError> for AnyError {
    fn from(error: StorageError) -> Self {
        AnyError::Engine(error.into())
    }
}

impl From<ramp_io::Error> for AnyError {
    fn from(error: ramp_io::Error) -> Self {
        AnyError::Files(error)
    }
}

impl From<LabError> for AnyError {
    fn from(error: LabError) -> Self {
        AnyError::Lab(error)
    }
}

impl<E: Into<AnyError>> From<E> for Failure {
    fn from(error: E) -> Self {
        let error = error.into();
        // The rank that failed has said why.
        if let AnyError::Engine(ramp::Error::Train(TrainError::RankFailed))
        | AnyError::Files(ramp_io::Error::Engine(ramp::Error::Train(TrainError::RankFailed))) =
            &error
        {
            return Failure {
                sentence: String::new(),
                user: false,
            };
        }
        let (sentence, advice) = match &error {
            AnyError::Engine(e) => (e.to_string(), engine_advice(e)),
            AnyError::Files(e) => (e.to_string(), advice(e)),
            AnyError::Lab(e) => (e.to_string(), ""),
        };
        Failure {
            sentence: sentence + advice,
            user: is_users(&error),
        }
    }
}

/// Whether the user's input caused an error, not the software or the machine: the one place that decides on exit codes.
fn is_users(error: &AnyError) -> bool {
    match error {
        AnyError::Engine(error) => engine(error),
        AnyError::Files(error) => files(error),
        AnyError::Lab(error) => match error {
            LabError::Ramp(error) => engine(error),
            LabError::Singular { .. } | LabError::Raster { .. } | LabError::Json { .. } => false,
            _ => true,
        },
    }
}

fn engine(error: &ramp::Error) -> bool {
    !matches!(
        error,
        ramp::Error::Storage(StorageError::File { .. } | StorageError::Arrays { .. })
            | ramp::Error::Train(
                TrainError::Description(_)
                    | TrainError::Threads { .. }
                    | TrainError::WeightsDiffer
                    | TrainError::RankFailed
            )
            | ramp::Error::Collective(_)
    )
}

fn files(error: &ramp_io::Error) -> bool {
    use ramp_io::Error;
    match error {
        Error::File { .. }
        | Error::ModelFile(ModelFileError::Write(_))
        | Error::Run(RunError::Write(_)) => false,
        Error::Engine(error) => engine(error),
        Error::InFile { source, .. }
        | Error::ModelFile(
            ModelFileError::InFile { source, .. } | ModelFileError::InSection { source, .. },
        ) => files(source),
        _ => true,
    }
}

fn engine_advice(error: &ramp::Error) -> &'static str {
    match error {
        ramp::Error::Train(TrainError::Checkpoint {
            fault: CheckpointFault::Diverged { .. },
            ..
        }) => " with --overwrite",
        _ => "",
    }
}

/// What the user of the command can do about an error, where the library, which knows no commands, cannot say.
fn advice(error: &ramp_io::Error) -> &'static str {
    use ramp_io::Error;
    match error {
        Error::ModelFile(ModelFileError::NotFound { .. }) => {
            "; `ramp init DATA.csv` writes one to start from"
        }
        Error::Run(RunError::NoData) => " or with --data",
        Error::Run(RunError::IsFile { .. }) => {
            "; `ramp fit MODEL.toml` writes one, into out/ unless --out says where"
        }
        Error::Run(RunError::Occupied { .. }) => {
            ": --resume goes on with it, --overwrite starts anew, --out takes another folder"
        }
        Error::Run(RunError::NothingToResume { .. }) => "; leave --resume out to start one",
        Error::Run(RunError::FolderIsFile { .. }) => "; name a folder with --out",
        Error::Run(RunError::OverInput { .. } | RunError::NotFromRun { .. }) => {
            "; take another folder with --out"
        }
        Error::Run(RunError::NotFinished { begun: false, .. }) => "; `ramp fit` makes one",
        Error::Run(RunError::NotFinished { begun: true, .. }) => {
            "; `ramp fit` makes one, and `ramp fit --resume` finishes one that was stopped"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Error as IoError, ErrorKind};

    #[test]
    fn users_mistakes_are_told_from_ours_and_advice_comes_with_its_variant() {
        let file = || ramp_io::Error::File {
            action: "read",
            path: "a".into(),
            source: IoError::from(ErrorKind::PermissionDenied),
        };
        let wrapped = |source: ramp_io::Error| ramp_io::Error::InFile {
            path: "data.csv".into(),
            source: Box::new(source),
        };
        let few = || RunError::TooFewSamples {
            samples: 1,
            chain: false,
        };
        let cases: [(Failure, bool, &str); 5] = [
            (file().into(), false, "cannot read"),
            (wrapped(file()).into(), false, "`data.csv`: cannot read"),
            (
                wrapped(few().into()).into(),
                true,
                "`data.csv`: a single row",
            ),
            (
                ramp_io::Error::from(RunError::NoData).into(),
                true,
                "in [data] or with --data",
            ),
            (
                ramp_io::Error::from(RunError::NotFinished {
                    folder: "out/a".into(),
                    begun: true,
                })
                .into(),
                true,
                "`ramp fit --resume` finishes one",
            ),
        ];
        for (failure, user, part) in cases {
            assert_eq!(failure.user, user, "{}", failure.sentence);
            assert!(failure.sentence.contains(part), "{}", failure.sentence);
        }
    }
}
