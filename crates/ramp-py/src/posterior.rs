//! Posteriors of all samples of some data, latent by latent, in blocks that NumPy takes over.

use ramp::graph::TimeAxis;
use ramp::infer::LatentPosterior;
use ramp_io::source::{SampleReader, Samples};
use ramp_io::stream::SampleSource;
use ramp_io::{Result, Run};

/// One latent's posterior of all samples; `[sample, (time,) coordinate]`.
pub struct Block {
    pub name: String,
    pub family: String,
    pub mean: Vec<f64>,
    pub sd: Vec<f64>,
    pub natural: Vec<f64>,
    /// Samples and, of a chain, steps.
    pub shape: Vec<usize>,
}

/// The posteriors of everything that a reader has, and of sequences in a table which row is which sample and step.
pub struct Posteriors {
    pub blocks: Vec<Block>,
    pub rows: Option<Vec<(i64, i64)>>,
    pub unseen: u64,
}

/// Goes through all samples, some at a time.
pub fn posteriors(run: &Run, mut reader: SampleReader) -> Result<Posteriors> {
    let mut parts: Vec<Vec<Block>> = vec![];
    let (mut rows, mut first, mut unseen) = (None, 0, 0);
    while let Some(samples) = reader.next_samples()? {
        let longer = run.longer_model(samples.steps())?;
        let model = longer.as_ref().unwrap_or(&run.model);
        let (data, unknown) = run.encode(&samples)?;
        unseen += unknown;
        let posterior = model.posterior(&data)?;
        parts.push(posterior.latents().iter().map(block).collect());
        if let Some(more) = places(&samples, first) {
            rows.get_or_insert_with(Vec::new).extend(more);
        }
        first += samples.len();
    }
    let mut parts = parts.into_iter();
    let mut blocks = parts
        .next()
        .ok_or(ramp_io::source::SourceError::Empty { path: None })?;
    for part in parts {
        for (block, more) in blocks.iter_mut().zip(part) {
            block.append(more);
        }
    }
    Ok(Posteriors {
        blocks,
        rows,
        unseen,
    })
}

fn block(latent: &LatentPosterior) -> Block {
    let (mean, sd) = latent.moments();
    let mut shape = vec![latent.rows()];
    shape.extend(latent.steps());
    Block {
        name: match latent.steps() {
            Some(_) => TimeAxis::LATENT.into(),
            None => latent.name().into(),
        },
        family: latent.belief().to_string(),
        mean: mean.into_values(),
        sd: sd.into_values(),
        natural: latent.naturals().to_vec(),
        shape,
    }
}

/// For every row of a long table, its sample and step; -1 for a row that belongs to none.
fn places(samples: &Samples, first: usize) -> Option<Vec<(i64, i64)>> {
    let (table, sequences) = (samples.table()?, samples.sequences.as_ref()?);
    let mut places = vec![(-1, -1); table.num_rows()];
    for (n, sequence) in sequences.iter().enumerate() {
        for (&item, &step) in sequence.items.iter().zip(&sequence.steps) {
            places[item as usize] = ((first + n) as i64, i64::from(step));
        }
    }
    Some(places)
}

impl Block {
    /// Puts more samples behind these; the shorter ones of a chain end in NaN.
    fn append(&mut self, more: Block) {
        let rows = [self.shape[0], more.shape[0]];
        if let ([_, a], [_, b]) = (&self.shape[..], &more.shape[..]) {
            let steps = (*a).max(*b);
            let all = [&mut self.mean, &mut self.sd, &mut self.natural];
            for (to, from) in all.into_iter().zip([&more.mean, &more.sd, &more.natural]) {
                let width = to.len() / (rows[0] * a).max(1);
                let mut whole = longer(to, width, *a, steps);
                whole.extend(longer(from, width, *b, steps));
                *to = whole;
            }
            self.shape = vec![rows[0] + rows[1], steps];
            return;
        }
        self.mean.extend(more.mean);
        self.sd.extend(more.sd);
        self.natural.extend(more.natural);
        self.shape[0] += more.shape[0];
    }
}

fn longer(values: &[f64], width: usize, steps: usize, to: usize) -> Vec<f64> {
    if steps == to {
        return values.to_vec();
    }
    let mut all = vec![];
    for sample in values.chunks_exact((steps * width).max(1)) {
        all.extend_from_slice(sample);
        all.resize(all.len() + (to - steps) * width, f64::NAN);
    }
    all
}
