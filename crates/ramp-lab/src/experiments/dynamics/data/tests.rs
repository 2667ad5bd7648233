//! Systems keep their laws, and what is drawn shows where they are.

use super::*;

fn rng() -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(4)
}

#[test]
fn energies_stay() {
    let energy = |system: System, s: &[f64]| match system {
        System::Pendulum => s[1] * s[1] / 2.0 - s[0].cos(),
        System::DoubleWell => s[1] * s[1] / 2.0 - s[0] * s[0] / 2.0 + s[0].powi(4) / 4.0,
        System::LotkaVolterra => s[0].exp() - s[0] + s[1].exp() - s[1],
        System::BouncingBall => s[2] * s[2] + s[3] * s[3],
        // Two rods of length and mass one: kinetic and potential energy.
        System::DoublePendulum => {
            s[2] * s[2] + s[3] * s[3] / 2.0 + s[2] * s[3] * (s[0] - s[1]).cos()
                - 2.0 * s[0].cos()
                - s[1].cos()
        }
        _ => 0.0,
    };
    for system in SYSTEMS {
        let path = system.trajectory(80, &mut rng());
        let first = energy(system, &path[0]);
        for state in &path {
            let off = (energy(system, state) - first).abs();
            assert!(off < 1e-5, "{system:?}: {off}");
        }
    }
}

#[test]
fn states_of_the_others_stay_bounded_and_move() {
    for system in [System::VanDerPol, System::Lorenz, System::BouncingBall] {
        let path = system.trajectory(100, &mut rng());
        assert!(path.iter().flatten().all(|x| x.abs() < 60.0), "{system:?}");
        assert!(path.windows(2).all(|w| w[0] != w[1]), "{system:?}");
    }
    let ball = System::BouncingBall.trajectory(200, &mut rng());
    assert!(ball.iter().all(|s| s[0].abs() <= 1.0 && s[1].abs() <= 1.0));
}

#[test]
fn a_picture_shows_where_the_dot_is() {
    for x in [-1.5, -0.4, 0.0, 1.2] {
        let mut frame = vec![0; 32 * 32];
        System::DoubleWell.draw(&[x, 0.0], 32, &mut frame);
        let mass: f64 = frame.iter().map(|&p| f64::from(p)).sum();
        let across = frame.iter().enumerate();
        let centre = across
            .map(|(i, &p)| (i % 32) as f64 * f64::from(p))
            .sum::<f64>()
            / mass;
        let expected = 15.5 + x / 2.0 * 0.38 * 32.0;
        assert!((centre - expected).abs() < 0.1, "{x}: {centre} {expected}");
    }
}

#[test]
fn training_and_test_sequences_differ_and_are_read_alike() {
    for system in SYSTEMS {
        let of = |stream| Recorded::new(system, 8, 3, 5, (1, stream)).unwrap();
        let (a, b, c) = (of(0), of(0), of(1));
        assert_eq!(a.truth, b.truth);
        assert_ne!(a.truth, c.truth);
        let read = |r: &Recorded| {
            let mut to = vec![0.0; r.width];
            r.read(2, 4, &mut to);
            to
        };
        assert_eq!(read(&a), read(&b));
        assert_eq!(a.dataset().unwrap().rows(), 3);
    }
    assert!(Recorded::new(System::Pendulum, 4, 3, 5, (1, 0)).is_err());
}
