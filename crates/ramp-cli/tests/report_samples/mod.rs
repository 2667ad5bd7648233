//! Reports like those of real fits, for the tests of the page: a questionnaire, a chain in time, a tree of many families.

mod extremes;
mod hostile;

pub use extremes::{sixty, sparse};
pub use hostile::{HOSTILE, hostile};

use ramp_cli::report::*;

/// Numbers that look random and are the same everywhere.
struct Chance(u64);

impl Chance {
    fn uniform(&mut self) -> f64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }
}

fn variable(name: &str, latent: bool) -> Variable {
    Variable {
        name: name.into(),
        latent,
    }
}

fn change(sentence: &str, gain: f64, standard_error: f64, p_value: f64) -> ChangeGain {
    ChangeGain {
        sentence: sentence.into(),
        gain,
        standard_error,
        p_value,
        newick: "(a,b,c)z;".into(),
    }
}

fn contributions(parts: &[(&str, f64)]) -> Vec<Contribution> {
    let contribution = |(from, nats): &(&str, f64)| Contribution {
        from: (*from).into(),
        nats: *nats,
    };
    parts.iter().map(contribution).collect()
}

/// What a fit would say of a standard normal latent whose true values are known.
fn gaussian(label: &str, truth: &[f64], sd: f64, chance: &mut Chance) -> Coordinate {
    // The posterior mean of a standard normal has variance 1 − sd².
    let mut at = |z: &f64| {
        let keep = 1.0 - sd * sd;
        (keep * z + sd * keep.sqrt() * chance.normal()) as f32
    };
    Coordinate {
        label: label.into(),
        prior: Some(Prior::Normal { mean: 0.0, sd: 1.0 }),
        mean: truth.iter().map(&mut at).collect(),
        sd: truth
            .iter()
            .map(|z| (sd * (1.0 + 0.08 * z.sin())) as f32)
            .collect(),
        ..Coordinate::default()
    }
}

fn latent(variable: usize, family: &str, train: f64, held_out: f64, spread: f64) -> Latent {
    Latent {
        variable,
        family: family.into(),
        free_energy: FreeEnergy {
            train,
            held_out: Some(held_out),
        },
        contributions: Vec::new(),
        spread,
        warnings: Vec::new(),
        coordinates: Vec::new(),
    }
}

fn training(iterations: usize, top: f64, gap: f64, chance: &mut Chance) -> Vec<TrainingPoint> {
    let point = |i: usize| {
        let way = 1.0 - (-(i as f64) / (0.15 * iterations as f64)).exp();
        TrainingPoint {
            iteration: i,
            free_energy: top * way + 0.012 * chance.normal(),
            held_out: i.is_multiple_of(10).then_some((top - gap * way) * way),
        }
    };
    (0..=iterations).step_by(2).map(point).collect()
}

fn facts(seed: u64) -> Vec<(String, String)> {
    let fact = |what: &str, value: String| (what.to_string(), value);
    vec![
        fact("version", "ramp 0.1.0".into()),
        fact("command", "ramp fit model.toml --out out/run".into()),
        fact("seed", seed.to_string()),
        fact("threads", "8".into()),
        fact("training", "500 iterations in 21.4 s".into()),
        fact("data", "5,000 rows, 12 columns, SHA-256 5f2b…c9e1".into()),
    ]
}

/// Twelve ordinal items on three facets of one general factor; 5,000 people, 8 % missing.
pub fn questionnaire() -> Report {
    let mut chance = Chance(88_172_645_463_325_252);
    let people = 2000;
    let facets = ["anxiety", "anger", "fatigue"];
    let items = [
        "tense",
        "worried",
        "restless",
        "afraid",
        "irritable",
        "resentful",
        "shouting",
        "impatient",
        "tired",
        "sleepy",
        "heavy",
        "slow",
    ];
    let distress: Vec<f64> = (0..people).map(|_| chance.normal()).collect();
    let loading: [f64; 3] = [0.85, 0.6, 0.7];
    let facet: Vec<Vec<f64>> = loading
        .iter()
        .map(|a| {
            let own = (1.0 - a * a).sqrt();
            distress
                .iter()
                .map(|d| a * d + own * chance.normal())
                .collect()
        })
        .collect();
    let mut variables = vec![variable("distress", true)];
    variables.extend(facets.iter().map(|f| variable(f, true)));
    variables.extend(items.iter().map(|i| variable(i, false)));
    let mut factors: Vec<Vec<usize>> = (1..=3).map(|f| vec![0, f]).collect();
    factors.extend((0..12).map(|i| vec![1 + i / 4, 4 + i]));

    let mut columns = vec![DataColumn {
        name: "clinic".into(),
        observed: false,
        missing: 0.0,
        values: Values::Levels {
            levels: ["Leeds", "Lyon", "Lund"].map(String::from).to_vec(),
            codes: (0..people)
                .map(|_| Some((chance.uniform() * 2.99) as u32))
                .collect(),
        },
    }];
    for (i, item) in items.iter().enumerate() {
        let missing = 0.05 + 0.005 * i as f64;
        let answer = |z: &f64| {
            let felt = 0.8 * z + 0.6 * chance.normal();
            let level = [-0.3, 0.5, 1.1, 1.8]
                .iter()
                .filter(|cut| felt > **cut)
                .count();
            (chance.uniform() >= missing).then_some(level as f32 + 1.0)
        };
        columns.push(DataColumn {
            name: (*item).into(),
            observed: true,
            missing,
            values: Values::Numbers(facet[i / 4].iter().map(answer).collect()),
        });
    }
    let mut latents = vec![latent(0, "gaussian(1)", 0.64, 0.62, 0.58)];
    latents[0].contributions =
        contributions(&[("anxiety", 0.41), ("fatigue", 0.22), ("anger", 0.15)]);
    latents[0].coordinates = vec![gaussian("distress", &distress, 0.58, &mut chance)];
    for f in 0..3 {
        let sd = [0.42, 0.47, 0.44][f];
        let mut facet_latent = latent(
            1 + f,
            "gaussian(1)",
            [1.71, 1.38, 1.52][f],
            [1.66, 1.21, 1.49][f],
            sd,
        );
        let mut parts = vec![("distress", [0.31, 0.12, 0.19][f])];
        parts.extend((0..4).map(|k| (items[4 * f + k], 0.34 - 0.05 * k as f64 - 0.03 * f as f64)));
        facet_latent.contributions = contributions(&parts);
        facet_latent.coordinates = vec![gaussian(facets[f], &facet[f], sd, &mut chance)];
        latents.push(facet_latent);
    }
    latents[2].warnings = vec![
        "`anger` explains 0.17 nats less on held-out rows than on the rows learned from: give it fewer hidden units or more data."
            .into(),
    ];
    let mut missing_patterns = vec![MissingPattern {
        missing: vec![false; 13],
        rows: 1870,
    }];
    for i in 0..12 {
        let mut missing = vec![false; 13];
        missing[1 + i] = true;
        missing_patterns.push(MissingPattern {
            missing: missing.clone(),
            rows: 208 - 9 * i,
        });
        if i > 8 {
            missing[i] = true;
            missing_patterns.push(MissingPattern {
                missing,
                rows: 64 - 4 * i,
            });
        }
    }
    missing_patterns.sort_by_key(|pattern| std::cmp::Reverse(pattern.rows));
    Report {
        title: "questionnaire".into(),
        data: "answers.csv".into(),
        rows: 5000,
        held_out_rows: 1000,
        validation_rows: 0,
        folds: 0,
        items: vec![],
        ranks: Some(HeldOutRanks {
            histogram: (0..20).map(|i| 40 + i * 7 % 11).collect(),
            verdict: "Even, as far as 900 cells can tell.".into(),
        }),
        variables,
        factors,
        root: Some(0),
        latents,
        training: training(500, 1.28, 0.06, &mut chance),
        observed_columns: 12,
        missing_cells: 0.04,
        columns,
        sampled_rows: people,
        missing_patterns,
        settings: SETTINGS.into(),
        facts: facts(0),
        sequence: None,
        over_time: None,
        changes: vec![
            change(
                "resentful belongs to anxiety rather than anger",
                0.031,
                0.004,
                1e-9,
            ),
            change(
                "one latent in place of anger and fatigue",
                -0.044,
                0.006,
                1.0,
            ),
        ],
    }
}

const SETTINGS: &str = r#"version = 1

[data]
file = "answers.csv"
holdout = 0.2

[tree]
newick = "((tense,worried,restless,afraid)anxiety,(irritable,resentful,shouting,impatient)anger,(tired,sleepy,heavy,slow)fatigue)distress;"

[latents]
family = "gaussian"
dim = 1

[networks]
message = { hidden = [32, 32], activation = "tanh" }
observation = { hidden = [32, 32], activation = "tanh" }

[train]
iterations = 500
batch = 1000
learning_rate = 0.001
seed = 0
"#;

/// Forty people over fifty days: a two-dimensional state behind heart rate and sleep.
pub fn chain() -> Report {
    let mut chance = Chance(362_436_069_521_288_629);
    let (people, days) = (40, 50);
    let (mut load, mut rest) = (Vec::new(), Vec::new());
    let (mut of, mut step) = (Vec::new(), Vec::new());
    for person in 0..people {
        let (mut a, mut b) = (chance.normal(), chance.normal());
        for day in 0..days {
            (a, b) = (
                0.9 * (0.95 * a - 0.3 * b) + 0.35 * chance.normal(),
                0.9 * (0.3 * a + 0.95 * b) + 0.35 * chance.normal(),
            );
            load.push(a);
            rest.push(b);
            of.push(person);
            step.push(day + 1);
        }
    }
    let mut numbers = |from: &[f64], missing: f64, mean: f64, sd: f64| {
        let read = |z: &f64| {
            let x = mean + sd * (0.8 * z + 0.6 * chance.normal());
            (chance.uniform() >= missing).then_some(x as f32)
        };
        Values::Numbers(from.iter().map(read).collect())
    };
    let column = |name: &str, missing, values| DataColumn {
        name: name.into(),
        observed: true,
        missing,
        values,
    };
    let columns = vec![
        column("heart", 0.03, numbers(&load, 0.03, 68.0, 9.0)),
        column("sleep", 0.21, numbers(&rest, 0.21, 7.1, 1.2)),
    ];
    let mut state = latent(0, "gaussian(2)", 1.92, 1.84, 0.51);
    state.contributions = contributions(&[
        ("the past", 0.71),
        ("the future", 0.69),
        ("heart", 0.38),
        ("sleep", 0.24),
    ]);
    state.coordinates = vec![
        gaussian("state.1", &load, 0.47, &mut chance),
        gaussian("state.2", &rest, 0.55, &mut chance),
    ];
    let curve = |less: f64| {
        let at = |t: i32| {
            let end = t.min(days as i32 - 1 - t) as f64;
            1.95 - less - 0.8 * (-end / 2.0).exp() + 0.02 * chance.normal()
        };
        (0..days as i32).map(at).collect::<Vec<f64>>()
    };
    let curves: Vec<Vec<f64>> = [0.0, 0.08].into_iter().map(curve).collect();
    Report {
        title: "days of heart and sleep".into(),
        data: "diary.parquet".into(),
        rows: 400,
        held_out_rows: 80,
        validation_rows: 0,
        folds: 0,
        items: vec![],
        ranks: None,
        variables: vec![
            variable("state", true),
            variable("heart", false),
            variable("sleep", false),
        ],
        factors: vec![vec![0, 1], vec![0, 2]],
        root: None,
        latents: vec![state],
        training: training(1000, 1.9, 0.08, &mut Chance(5)),
        observed_columns: 2,
        missing_cells: 0.12,
        columns,
        sampled_rows: load.len(),
        missing_patterns: vec![
            MissingPattern { missing: vec![false, false], rows: 15_310 },
            MissingPattern { missing: vec![false, true], rows: 4_070 },
            MissingPattern { missing: vec![true, false], rows: 470 },
            MissingPattern { missing: vec![true, true], rows: 150 },
        ],
        settings: "version = 1\n\n[tree]\nchain = { sequence = \"person\", time = \"day\", observe = [\"heart\", \"sleep\"] }\n".into(),
        facts: facts(3),
        sequence: Some(Sequence {
            id: "person".into(),
            time: "day".into(),
            steps: days,
            links: vec![(0, 0)],
            of,
            step: step.iter().map(|t| *t as u32).collect(),
            curves: vec![StepCurve {
                variable: 0,
                train: curves[0].clone(),
                held_out: curves[1].clone(),
            }],
        }),
        over_time: Some(OverTime {
            name: "p07".into(),
            steps: 40,
            times: (1..=45).map(|day| format!("2024-02-{day:02}")).collect(),
            interval: 0.8,
            bands: vec![
                Band {
                    label: "state".into(),
                    observed: vec![],
                    middle: (0..45).map(|t| (0.3 * t as f32).sin()).collect(),
                    low: (0..45).map(|t| (0.3 * t as f32).sin() - 0.4).collect(),
                    high: (0..45).map(|t| (0.3 * t as f32).sin() + 0.4).collect(),
                },
                Band {
                    label: "heart".into(),
                    observed: (0..45).map(|t| if t % 9 == 4 || t >= 40 { f32::NAN } else { 68.0 + (t % 7) as f32 }).collect(),
                    middle: (0..45).map(|t| if t < 40 { f32::NAN } else { 69.0 }).collect(),
                    low: (0..45).map(|t| if t < 40 { f32::NAN } else { 60.0 }).collect(),
                    high: (0..45).map(|t| if t < 40 { f32::NAN } else { 78.0 }).collect(),
                },
            ],
        }),
        changes: vec![],
    }
}

/// Ten latents of several families, a factor of four members, a collapsed latent, a negative free energy and unknowns.
pub fn mixed() -> Report {
    let mut chance = Chance(521_288_629_546_311);
    let samples = 1500;
    let names = [
        "habitat", "climate", "soil", "season", "place", "guild", "size", "diet", "call", "plumage",
    ];
    let mut variables: Vec<Variable> = names.iter().map(|n| variable(n, true)).collect();
    let mut factors = vec![
        vec![0, 1],
        vec![0, 2],
        vec![1, 3],
        vec![1, 4],
        vec![0, 5, 6, 7],
        vec![5, 8],
        vec![5, 9],
    ];
    let mut columns = Vec::new();
    for parent in [2, 3, 4, 6, 7, 8, 9, 2, 3, 4, 6, 7, 8, 9, 1, 0] {
        let observed = variables.len();
        let name = format!("{}_{}", names[parent], observed - 9);
        variables.push(variable(&name, false));
        factors.push(vec![parent, observed]);
        let missing = if observed.is_multiple_of(5) {
            0.12
        } else {
            0.0
        };
        let draw =
            |_| (chance.uniform() >= missing).then_some((1.0 + chance.normal()).exp() as f32);
        columns.push(DataColumn {
            name,
            observed: true,
            missing,
            values: Values::Numbers((0..samples).map(draw).collect()),
        });
    }
    let mut latents: Vec<Latent> = (0..10)
        .map(|k| {
            latent(
                k,
                "gaussian(1)",
                0.4 + 0.11 * k as f64,
                0.37 + 0.1 * k as f64,
                0.7 - 0.04 * k as f64,
            )
        })
        .collect();
    for k in 0..10 {
        let neighbours: Vec<(&str, f64)> = (0..k % 4 + 2)
            .map(|j| (names[(k + j + 1) % 10], 0.3 - 0.09 * j as f64))
            .collect();
        latents[k].contributions = contributions(&neighbours);
        let truth: Vec<f64> = (0..samples).map(|_| chance.normal()).collect();
        latents[k].coordinates = vec![gaussian(
            names[k],
            &truth,
            0.7 - 0.04 * k as f64,
            &mut chance,
        )];
    }
    let angle: Vec<f64> = (0..samples)
        .map(|_| chance.normal() + if chance.uniform() < 0.4 { 2.6 } else { -0.3 })
        .collect();
    latents[3].family = "von-mises".into();
    latents[3].coordinates = vec![Coordinate {
        label: "season".into(),
        circular: true,
        prior: Some(Prior::Uniform {
            low: -std::f32::consts::PI,
            high: std::f32::consts::PI,
        }),
        mean: angle.iter().map(|a| *a as f32).collect(),
        sd: angle.iter().map(|a| 0.4 + 0.1 * a.sin() as f32).collect(),
        ..Coordinate::default()
    }];
    let around = |f: fn(f64) -> f64| angle.iter().map(|a| f(*a)).collect::<Vec<f64>>();
    latents[4].family = "gaussian(2)".into();
    latents[4].coordinates = vec![
        gaussian("place.1", &around(f64::cos), 0.3, &mut chance),
        gaussian("place.2", &around(f64::sin), 0.3, &mut chance),
    ];
    latents[5].family = "categorical(3)".into();
    let weights: Vec<[f64; 3]> = (0..samples)
        .map(|_| [0.0; 3].map(|_: f64| (2.0 * chance.normal()).exp()))
        .collect();
    latents[5].coordinates = (0..3)
        .map(|level| {
            let mean: Vec<f32> = weights
                .iter()
                .map(|w| (w[level] / w.iter().sum::<f64>()) as f32)
                .collect();
            Coordinate {
                label: format!("guild.p{}", level + 1),
                range: Some((0.0, 1.0)),
                sd: mean.iter().map(|p| (p * (1.0 - p)).sqrt()).collect(),
                mean,
                ..Coordinate::default()
            }
        })
        .collect();
    latents[6].free_energy = FreeEnergy {
        train: 0.02,
        held_out: Some(-0.04),
    };
    latents[6].spread = 0.995;
    latents[6].contributions[0].nats = -0.06;
    latents[6].warnings =
        vec!["`size` has collapsed to its prior: its columns say nothing about each other.".into()];
    latents[8].coordinates[0].mean[7] = f32::NAN;
    latents[9].spread = f64::NAN;
    let mut missing_patterns = vec![MissingPattern {
        missing: vec![false; 16],
        rows: 9_120,
    }];
    let often: Vec<bool> = columns.iter().map(|c| c.missing > 0.0).collect();
    missing_patterns.push(MissingPattern {
        missing: often,
        rows: 640,
    });
    Report {
        title: "birds of many places".into(),
        data: "birds.parquet".into(),
        rows: 12_000,
        held_out_rows: 2_400,
        validation_rows: 0,
        folds: 0,
        items: vec![],
        ranks: None,
        variables,
        factors,
        root: None,
        latents,
        training: training(2000, 0.8, 0.03, &mut chance),
        observed_columns: 16,
        missing_cells: 0.1,
        columns,
        sampled_rows: samples,
        missing_patterns,
        settings: "version = 1\n".into(),
        facts: facts(7),
        sequence: None,
        over_time: None,
        changes: vec![],
    }
}
