use anyhow::{Context as _, anyhow};

use super::message;

#[test]
fn hints_follow_the_error_and_its_causes() {
    let cause = Err::<(), _>(anyhow!("no such file"));
    let error = cause
        .context("cannot open `x`\nhint: create it")
        .unwrap_err();

    assert_eq!(
        message(&error),
        "error: cannot open `x`: no such file\nhint: create it"
    );
}

#[test]
fn a_cause_with_the_same_text_is_printed_once() {
    let error = anyhow!("busy\nhint: wait")
        .context("busy")
        .context("cannot write");

    assert_eq!(message(&error), "error: cannot write: busy\nhint: wait");
}
