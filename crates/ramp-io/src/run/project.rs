//! A model file meets its data: everything is read and checked, and a model stands ready to be trained.

use super::data_file::{DataFile, check_latents, observed, wanted};
use super::dealt::{Extent, missing_in};
use super::manifest::Checksum;
use super::{BeyondLinear, CrossValidation, RunError, temperature};
use crate::encode::{Encoder, Encoding, found_in};
use crate::model_file::{ModelFile, TreeSettings};
use crate::ranks::{Parts, together};
use crate::readout::Readout;
use crate::sign_alignment;
use crate::source::{Content, SampleReader, Samples, Sequence, Windows};
use crate::table::{self, Column, columns};
use crate::{Error, Result};
use arrow_array::RecordBatch;
use ramp::data::{Dataset, Dealt, Gather};
use ramp::graph::{FactorTree, Tying, VariableId};
use ramp::model::{Initialisation, Model};
use ramp::network::{ConvLayer, ConvSpec, MonotoneSpec, NetworkSpec};
use ramp::train::{Observer, Split, TrainSpec, TriedStart, start_chain};
use std::borrow::Cow;
use std::path::Path;

/// A model that is ready to be trained on its data.
#[derive(Debug)]
pub struct Project {
    /// What the user wrote.
    pub file: ModelFile,
    /// The settings of training, all of them.
    pub train: TrainSpec,
    /// The model file with all settings of training spelled out, as it is kept with the run.
    pub settings: String,
    /// The data as it stands in its file. Of several ranks, each has some consecutive samples of it; see [`rows`](Self::rows) and [`select`](Self::select).
    pub samples: Samples,
    /// The data as observations, dealt to ranks in the same way.
    pub data: Dealt,
    /// The way from one to the other.
    pub encoder: Encoder,
    /// The model.
    pub model: Model,
    /// The samples to learn from.
    pub training: Vec<u32>,
    /// The samples that choose the weights.
    pub validation: Vec<u32>,
    /// The samples that training never touches.
    pub held_out: Vec<u32>,
    /// How long sequences were cut, where they were; samples are windows then.
    pub windows: Option<Windows>,
    /// The sequences of a chain before they were cut.
    pub series: Vec<Sequence>,
    /// How missing numbers are read off the trained tree and the rest of a row; see [`learn_readout`](Self::learn_readout).
    pub readout: Option<Readout>,
    /// How much messages count where the tree alone fills missing cells; see [`learn_readout`](Self::learn_readout). As they are where nothing was learned.
    pub temperature: Option<f64>,
    /// What several fits to parts of a small sample said; see [`cross_validate`](Self::cross_validate).
    pub cross_validation: Option<CrossValidation>,
    /// Whether networks say more than the linear factor model that the tree began as, where it did.
    pub beyond_linear: Option<BeyondLinear>,
    /// All columns of data that was in memory.
    whole: Option<RecordBatch>,
    /// How samples are dealt to ranks, where they are.
    pub(super) parts: Option<Parts>,
    /// What is known of all samples.
    pub(super) extent: Extent,
    /// Whether this rank asks for samples and the others wait to be asked.
    pub(super) leads: bool,
    /// What the file was when it was read.
    pub(super) read: Option<Checksum>,
}

impl Project {
    /// Reads the data, learns its scales and levels, and builds the model.
    pub fn prepare(file: ModelFile) -> Result<Self> {
        let DataFile {
            path,
            names,
            wanted,
        } = DataFile::find(&file)?;
        let mut reader = SampleReader::open(&path, file.chain(), Some(&wanted))?;
        // Before the rows are read: a file that changes later is not what was learned from.
        let read = Checksum::of(&path)?;
        let mut project = Self::assemble(file, names, reader.rest()?, Some(&path), None, None)?;
        project.read = Some(read);
        Ok(project)
    }

    /// The same for data that is in memory already, whatever file the model file names.
    pub fn prepare_in_memory(mut file: ModelFile, content: Content) -> Result<Self> {
        file.data.file = None;
        let names = observed(&file)?;
        let wanted = wanted(&file, &names);
        let (content, whole) = match content {
            Content::Table(table) => {
                let table = table::readable(&table)?;
                check_latents(&file, None, Some(table.schema_ref()))?;
                (Content::Table(table.clone()), Some(table))
            }
            arrays => (arrays, None),
        };
        let samples = Samples::in_memory(content, file.chain(), Some(&wanted))?;
        Self::assemble(file, names, samples, None, whole, None)
    }

    pub(super) fn assemble(
        mut file: ModelFile,
        names: Vec<String>,
        samples: Samples,
        path: Option<&Path>,
        whole: Option<RecordBatch>,
        parts: Option<Parts>,
    ) -> Result<Self> {
        let in_file = |e: Error| match path {
            Some(path) => e.in_file(path),
            None => e,
        };
        if file.init() == Initialisation::Factors && !file.has_factors() {
            return Err(RunError::NoFactors.into());
        }
        let series = samples.sequences.clone().unwrap_or_default();
        let (samples, windows) = cut(&mut file, samples);
        let mut extent = Extent::of(&samples, parts.as_ref())?;
        let count = extent.rows;
        if count < 2 {
            let too_few = RunError::TooFewSamples {
                samples: count,
                chain: file.chain().is_some(),
            };
            return Err(in_file(too_few.into()));
        }
        let apart = |share: f64| (count as f64 * share).round() as usize;
        let apart = apart(file.data.holdout) + apart(file.data.validation);
        let learned = count - apart.min(count);
        let mut train = file.train_spec(learned)?;
        // Of a handful of samples, one at least.
        for share in [&mut train.holdout, &mut train.validation] {
            if *share > 0.0 && count > 2 {
                *share = share.max(1.0 / count as f64);
            }
        }
        if let Some(windows) = &windows {
            // Time decides what is held out, not chance.
            train.holdout = windows.held_out as f64 / count as f64;
            train.holdout_last = true;
        }
        let Split {
            training,
            validation,
            held_out,
            ..
        } = train
            .split(count)
            .map_err(|e| in_file(ramp::Error::from(e).into()))?;
        let (encoder, data, model) = learn_encoding(
            &file,
            &names,
            &samples,
            &mut extent,
            &training,
            train.seed,
            parts.as_ref(),
        )
        .map_err(in_file)?;
        if has_images(&encoder) {
            train = of_images(&file, learned, train)?;
        }
        Ok(Project {
            settings: file.resolved(&train)?,
            file,
            train,
            samples,
            data,
            encoder,
            model,
            training,
            validation,
            held_out,
            windows,
            series,
            readout: None,
            temperature: None,
            cross_validation: None,
            beyond_linear: None,
            whole,
            read: None,
            parts,
            extent,
            leads: false,
        })
    }

    /// The same model of some of [all samples](Self::all_samples): it learns from the first ones, also what it learns of their columns, and is judged on the others.
    /// Weights are those that it begins with.
    pub(super) fn fold(&self, all: &Samples, learned: &[u32], judged: &[u32]) -> Result<Self> {
        let order = [learned, judged].concat();
        let samples = all.select(&order)?;
        let mut extent = Extent::of(&samples, None)?;
        let mut train = self.file.train_spec(learned.len())?;
        (train.holdout, train.holdout_last) = (0.0, true);
        // What a model file gives may be more than a part of the samples has.
        train.batch = train.batch.filter(|&b| b < learned.len());
        train.mixture = train
            .mixture
            .filter(|&m| m < train.batch.unwrap_or(learned.len()));
        train.validation = judged.len() as f64 / order.len() as f64;
        let training: Vec<u32> = (0..learned.len() as u32).collect();
        let names = observed(&self.file)?;
        let (encoder, data, model) = learn_encoding(
            &self.file,
            &names,
            &samples,
            &mut extent,
            &training,
            train.seed,
            None,
        )?;
        if has_images(&encoder) {
            let small = (train.batch, train.mixture);
            train = of_images(&self.file, learned.len(), train)?;
            (train.batch, train.mixture) = small;
        }
        Ok(Project {
            file: self.file.clone(),
            settings: String::new(),
            train,
            samples,
            data,
            encoder,
            model,
            training,
            validation: (learned.len() as u32..order.len() as u32).collect(),
            held_out: vec![],
            windows: None,
            series: vec![],
            readout: None,
            temperature: None,
            cross_validation: None,
            beyond_linear: None,
            whole: None,
            read: None,
            parts: None,
            extent,
            leads: false,
        })
    }

    /// Learns how missing numbers are read off the tree and the rest of a row, and how much messages count in cells that the tree fills alone. To be called
    /// once the model is trained; a run that is finished without it learns the first then, and takes messages at their word.
    pub fn learn_readout(&mut self) -> Result<()> {
        self.readout = Readout::learn(self)?;
        self.temperature = temperature::learn(self)?;
        Ok(())
    }

    /// How well missing numbers are filled, in a sentence, once that is learned.
    pub fn describe_readout(&self) -> Option<String> {
        self.readout.as_ref()?.describe(&self.encoder)
    }
}

impl Project {
    /// The fraction of items in which an observation is missing; of sequences, among all of their steps.
    pub fn missing(&self, observation: &str) -> f64 {
        let data = self.data.here();
        let (gone, all) = match (&self.extent.missing, data.observation(observation)) {
            (_, Err(_)) => return 0.0,
            (Some(counted), Ok(own)) => {
                let at = data
                    .observations()
                    .iter()
                    .position(|o| o.name() == own.name());
                at.map_or((0, 0), |at| counted[at])
            }
            (None, Ok(own)) => missing_in(data, own),
        };
        gone as f64 / all.max(1) as f64
    }

    /// Cuts other columns of the project's rows as the project's samples were.
    fn cut(&self, samples: Samples) -> Samples {
        match &self.windows {
            Some(windows) => samples.cut(windows.length, self.file.data.holdout).0,
            None => samples,
        }
    }
}

/// Chooses seasons and windows where the model file leaves them open, and cuts long sequences into windows.
fn cut(file: &mut ModelFile, samples: Samples) -> (Samples, Option<Windows>) {
    let holdout = file.data.holdout;
    let TreeSettings::Chain(chain) = &mut file.tree else {
        return (samples, None);
    };
    if chain.season.is_none() {
        chain.season = Some(found_in(chain.step, &samples)).filter(|s| !s.is_empty());
    }
    let longest = samples.steps() as u32;
    let table = samples.table().is_some();
    let wanted = chain.window.or_else(|| samples.window(holdout));
    match wanted.filter(|&w| table && w < longest) {
        None => (samples, None),
        Some(window) => {
            chain.window = Some(window);
            let (samples, windows) = samples.cut(window, holdout);
            (samples, Some(windows))
        }
    }
}

impl Project {
    /// Lets the networks of a chain begin by what its data show, unless the model file asks for another start, and tells which states were
    /// estimated, the best first. To be called once, before training; the observer watches the pretraining on them. A tree that begins as a linear factor
    /// model does so when it is trained.
    pub fn initialise(
        &mut self,
        threads: Option<usize>,
        observer: &mut dyn Observer,
    ) -> Result<Vec<TriedStart>> {
        match self.file.init() {
            Initialisation::Dynamics => Ok(start_chain(
                &mut self.model,
                &self.data,
                &self.training,
                &self.train,
                threads,
                observer,
            )?),
            _ => Ok(vec![]),
        }
    }

    /// Lets a tree begin as a linear factor model, and tells whether it does: not where another start was chosen, latents are not Gaussian, or data
    /// are too few.
    pub(crate) fn init_factors(&mut self) -> ramp::Result<bool> {
        let suits = self.file.init() == Initialisation::Factors
            && (self.file.networks.init.is_some() || !self.has_images());
        Ok(suits && self.model.init_factors(&self.data, &self.training)?)
    }

    /// Whether images are observed, which a linear model says little about.
    pub(super) fn has_images(&self) -> bool {
        has_images(&self.encoder)
    }
}

fn has_images(encoder: &Encoder) -> bool {
    let mut observations = encoder.observations.iter();
    observations.any(|o| matches!(o.encoding, Encoding::Image { .. }))
}

/// The settings of training for images, where those for other observations have divided the samples already.
fn of_images(file: &ModelFile, samples: usize, divided: TrainSpec) -> Result<TrainSpec> {
    Ok(TrainSpec {
        holdout: divided.holdout,
        validation: divided.validation,
        holdout_last: divided.holdout_last,
        split_seed: divided.split_seed,
        ..file.train_spec_for(samples, true)?
    })
}

impl Project {
    /// The samples that are here with all columns of their file, or with the model's alone where the file has more than `most` or holds arrays. The file is
    /// read once more, so this is for before training; if it is not the same any more, that is an error.
    pub fn with_all_columns(&self, most: usize) -> Result<Cow<'_, Samples>> {
        let own = &self.samples;
        let (chain, parts) = (self.file.chain(), self.parts.as_ref());
        if let Some(whole) = &self.whole {
            if whole.num_columns() > most {
                return Ok(Cow::Borrowed(own));
            }
            let content = Content::Table(whole.clone());
            let all = Samples::in_memory(content, self.file.chain(), None)?;
            return Ok(Cow::Owned(self.cut(all)));
        }
        let (Some(path), Some(used)) = (&self.file.data.file, own.table()) else {
            return Ok(Cow::Borrowed(own));
        };
        let mut reader = match parts {
            None => SampleReader::open(path, chain, None)?,
            Some(parts) => SampleReader::open_part(path, chain, None, &parts.place)?,
        };
        if (reader.schema()).is_none_or(|schema| schema.fields().len() > most) {
            return Ok(Cow::Borrowed(own));
        }
        let changed = || RunError::DataChanged { path: path.clone() };
        let all = match parts {
            None => self.cut(reader.rest()?),
            Some(_) => reader.rest_of_part()?,
        };
        let same = |column: Column<'_>| {
            let again = all.table().map(|table| table::column(table, column.name()));
            again.is_some_and(|again| again.is_ok_and(|again| again.cells == column.cells))
        };
        match columns(used).all(same) && all.sequences == own.sequences {
            true => Ok(Cow::Owned(all)),
            false => Err(changed().into()),
        }
    }
}

/// Learns scales and levels from some of the samples, which may be dealt to ranks, and builds a model for them.
fn learn_encoding(
    file: &ModelFile,
    names: &[String],
    samples: &Samples,
    extent: &mut Extent,
    training: &[u32],
    seed: u64,
    parts: Option<&Parts>,
) -> Result<(Encoder, Dealt, Model)> {
    let encoder = match parts {
        None => Encoder::learn(file, names, samples, training),
        Some(parts) => Encoder::learn_among(file, names, samples, training, parts),
    }?;
    let encoded = encoder.encode_steps(samples, extent.steps);
    let encoded = encoded.map(|(data, _)| data);
    let data = match parts {
        None => Dealt::from(encoded?),
        Some(parts) => {
            let data = Dealt::new(together(&*parts.ranks, encoded)?, parts.ranks.clone())?;
            extent.count_missing(data.here(), &*parts.ranks)?;
            data
        }
    };
    let tree = file.build_tree(extent.steps.max(2))?;
    let few = sign_alignment::looked_at(training);
    let few = match parts {
        None => samples.select(few),
        Some(parts) => parts.gather(samples, few),
    };
    let reversed = sign_alignment::reversed_observations(&tree, &encoder, few?)?;
    let model = build(file, tree, &encoder, &reversed, data.here(), seed)?;
    Ok((encoder, data, model))
}

fn build(
    file: &ModelFile,
    tree: FactorTree,
    encoder: &Encoder,
    reversed: &[bool],
    data: &Dataset,
    seed: u64,
) -> Result<Model> {
    let chain = file.chain().is_some();
    let tying = file
        .networks
        .tying
        .unwrap_or(if chain { Tying::Role } else { Tying::Separate });
    let latents: Vec<String> = tree
        .latents()
        .iter()
        .map(|&v| tree.name(v).to_string())
        .collect();
    if let Some(name) = file
        .latents
        .each
        .keys()
        .find(|n| chain || !latents.contains(n))
    {
        let name = name.clone();
        return Err(if chain {
            RunError::LatentOfChain { name }
        } else {
            RunError::NotInTree {
                name,
                known: latents,
            }
        }
        .into());
    }
    let networks = tying.assign(&tree);
    // The network of what an observation tells its latent.
    let key_of = |x: VariableId| -> Option<String> {
        let message = tree.message(tree.factors_of(x)[0], tree.latent_of(x)?)?;
        Some(networks.keys[networks.of_message[message.index()]].clone())
    };
    let keys: Vec<Option<String>> = encoder
        .observations
        .iter()
        .map(|o| match (tree.time_axis(), tying) {
            (Some(time), Tying::Role) => key_of(tree.observation_at(time.find(&o.name).ok()?, 0)?),
            (None, Tying::Separate) => key_of(tree.find(&o.name).ok()?),
            _ => None,
        })
        .collect();
    let mut builder = Model::builder(tree)
        .tying(tying)
        .inputs(file.networks.inputs)
        .message_network(file.message_network())
        .observation_network(file.observation_network())
        .init(file.init())
        .seed(seed);
    builder = builder.families(&file.latents.family.to_string())?;
    for (latent, family) in &file.latents.each {
        builder = builder.family(latent, &family.to_string())?;
    }
    for (observation, key) in encoder.observations.iter().zip(keys.clone()) {
        let own = file
            .observations
            .get(&observation.name)
            .and_then(|o| o.network.clone());
        let network = match (own, &observation.encoding) {
            (Some(network), _) => Some(network),
            (None, encoding) if is_monotone(file, &observation.name, encoding) => {
                Some(NetworkSpec::Monotone(MonotoneSpec::default()))
            }
            (None, Encoding::Image { shape }) if file.networks.observation.is_none() && !chain => {
                Some(convolutions(*shape))
            }
            _ => None,
        };
        let Some(network) = network else { continue };
        let Some(key) = key else {
            return Err(RunError::SharedNetwork {
                name: observation.name.clone(),
            }
            .into());
        };
        builder = builder.network(key, network);
    }
    let mut model = builder.build(data)?;
    for (key, _) in keys.iter().zip(reversed).filter(|(_, reversed)| **reversed) {
        if let Some(key) = key {
            model.flip_input_sign(key)?;
        }
    }
    Ok(model)
}

/// Whether an observation's message is monotone: ordered levels' unless the file says otherwise, numbers' where it asks for it.
pub(crate) fn is_monotone(file: &ModelFile, name: &str, encoding: &Encoding) -> bool {
    let said = file.monotone(name);
    match encoding {
        Encoding::Ordinal { .. } => said.unwrap_or(true),
        Encoding::Number { .. } => said.unwrap_or(false),
        _ => false,
    }
}

/// The recognition network for images unless another is asked for: three convolutions, as for the paper's poses.
fn convolutions(image: [usize; 3]) -> NetworkSpec {
    let layer = |channels, stride| ConvLayer {
        channels,
        kernel: 3,
        stride,
        padding: 1,
    };
    NetworkSpec::Conv(ConvSpec {
        image,
        layers: vec![layer(32, 1), layer(64, 2), layer(32, 2)],
        dense: vec![],
        activation: ramp::network::Activation::Relu,
        initialization: None,
    })
}
