use super::*;

#[test]
fn a_machine_without_a_sandbox_runs_without_and_says_so() {
    let confinement = reading(Arc::from([]));

    let (jail, warning) = jail(&confinement, Path::new("sh"), &[], FileStops::None, || {
        Force::None("no Landlock".to_owned())
    })
    .unwrap();

    assert!(jail.is_none());
    assert_eq!(
        warning.as_deref(),
        Some("ran without a sandbox: no Landlock")
    );
}

#[test]
fn a_machine_with_half_a_sandbox_uses_it() {
    let confinement = reading(Arc::from([]));

    let (jail, warning) = jail(&confinement, Path::new("sh"), &[], FileStops::None, || {
        Force::Partly(vec![Gap::Signals])
    })
    .unwrap();

    assert!(jail.is_some());
    assert_eq!(warning, None);
}

#[test]
fn what_is_in_force_is_told_in_words() {
    let cases = [
        (Force::Full, "in force", true),
        (
            Force::Partly(vec![Gap::Signals]),
            "in force, but does not prevent signals to processes outside",
            true,
        ),
        (
            Force::Partly(vec![Gap::Truncate, Gap::Signals]),
            "in force, but does not prevent emptying files outside, signals to processes outside",
            false,
        ),
        (
            Force::None("no Landlock".to_owned()),
            "not in force: no Landlock",
            false,
        ),
    ];

    for (force, words, is_safe) in cases {
        assert_eq!(force.to_string(), words);
        assert_eq!(force.makes_reading_safe(), is_safe, "{words}");
    }
}
