//! Samples that are dealt to ranks are those of one process.

use super::{Dataset, Dealt, Gather};
use crate::collective::{Collective, Threads};
use std::sync::Arc;

const ROWS: usize = 11;

/// Numbers of which only the samples from the seventh on lack some, bytes, and sequences of different lengths.
fn some(rows: std::ops::Range<usize>) -> Dataset {
    let number = |n: usize| {
        if n > 6 && n % 3 == 1 {
            f32::NAN
        } else {
            n as f32
        }
    };
    let steps = |n: usize| {
        (0..3).map(move |t| {
            if t > n % 3 {
                f32::NAN
            } else {
                (10 * n + t) as f32
            }
        })
    };
    Dataset::new()
        .observe("x", 1, rows.clone().map(number).collect())
        .and_then(|data| {
            data.observe(
                "whole",
                2,
                rows.clone().flat_map(|n| [n as f32; 2]).collect(),
            )
        })
        .and_then(|data| {
            data.observe_bytes(
                "pixels",
                2,
                rows.clone().flat_map(|n| [n as u8, 9]).collect(),
                None,
            )
        })
        .and_then(|data| data.observe_sequence("s", 3, 1, rows.clone().flat_map(steps).collect()))
        .and_then(|data| data.with_lengths(rows.map(|n| 1 + n as u32 % 3).collect()))
        .unwrap()
}

/// Every number of a data set, and what it lacks.
fn spelled(data: &Dataset, rows: std::ops::Range<usize>) -> String {
    let mut text = format!("{:?}", data.lengths());
    for o in data.observations() {
        for row in 0..data.rows() {
            let there: Vec<bool> = (0..o.steps().unwrap_or(1))
                .map(|t| o.step(t).is_present(row))
                .collect();
            let numbers = rows.contains(&row).then(|| o.numbers(row));
            text += &format!(
                "{} {row} {there:?} {numbers:?} {}\n",
                o.name(),
                o.is_complete()
            );
        }
    }
    text
}

#[test]
fn dealt_samples_are_those_of_one_process() {
    let whole = some(0..ROWS);
    let asked = [9, 0, 5, 5, 2, 10, 7];
    for ranks in 1..5 {
        std::thread::scope(|scope| {
            for own in Threads::group(ranks) {
                let whole = &whole;
                scope.spawn(move || {
                    let me = own.rank();
                    // The first rank has none where there are several, and the second no gap.
                    let until = |r: usize| {
                        if r == ranks {
                            ROWS
                        } else {
                            6 * r.saturating_sub(1) / ranks
                        }
                    };
                    let part = some(until(me)..until(me + 1));
                    let dealt = Dealt::new(part, Arc::new(own)).unwrap();
                    assert_eq!(
                        (dealt.rows(), dealt.own_rows()),
                        (ROWS, until(me)..until(me + 1))
                    );
                    assert_eq!(Gather::fingerprint(&dealt), whole.fingerprint());
                    let wanted = spelled(&whole.select(&asked), 0..asked.len());
                    let got = dealt.gather(&asked).unwrap();
                    assert_eq!(spelled(&got, 0..asked.len()), wanted);
                    if ranks > 1 {
                        // Of a batch each rank holds the numbers of its own rows.
                        let ends: Vec<usize> =
                            (1..=ranks).map(|r| asked.len() * r / ranks).collect();
                        let held = crate::collective::span(&ends, me);
                        let batch = dealt.deal(&asked, &ends).unwrap();
                        let wanted = spelled(&whole.select(&asked), held.clone());
                        assert_eq!(spelled(&batch, held), wanted);
                    }
                    let one = dealt.gather_observation("x").unwrap();
                    assert_eq!((one.rows(), one.observations().len()), (ROWS, 1));
                    assert!(!one.observation("x").unwrap().is_present(7));
                    assert!(dealt.gather_observation("z").is_err());
                });
            }
        });
    }
}

#[test]
fn parts_of_other_data_are_refused() {
    std::thread::scope(|scope| {
        for own in Threads::group(3) {
            scope.spawn(move || {
                let name = if own.rank() == 2 { "y" } else { "x" };
                let part = Dataset::new().observe(name, 1, vec![1.0]).unwrap();
                let says = Dealt::new(part, Arc::new(own)).unwrap_err().to_string();
                assert!(
                    says.starts_with("rank 2 has other data than rank 0"),
                    "{says}"
                );
            });
        }
    });
}
