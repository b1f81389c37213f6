use std::time::Duration;

use ikigai_core::{AgentId, Seq};

use super::*;

fn question(seq: u64) -> Question {
    Question {
        call: RowRef {
            agent: AgentId::from_random([1; 16]).unwrap(),
            seq: Seq(seq),
        },
        agent: "coder".to_owned(),
        tool: "bash".to_owned(),
        shown: format!("touch f{seq}"),
        workdir: "/src".to_owned(),
        preview: None,
        pattern: "touch *".to_owned(),
        hash: String::new(),
    }
}

/// Returns the call that a line answers.
fn answered(open: &mut PrintedQuestions, line: &str, read_at: Instant) -> Option<u64> {
    match open.interpret(line, read_at) {
        TypedLine::Answer(call, Answer::Once) => Some(call.seq.0),
        _ => None,
    }
}

#[test]
fn lines_typed_ahead_do_not_approve_the_next_question() {
    let mut open = PrintedQuestions::default();
    let start = Instant::now();
    let later = |millis| start + Duration::from_millis(millis);
    assert!(open.add(&question(1)));
    assert!(!open.add(&question(2)));

    assert_eq!(answered(&mut open, "1", later(5)), None, "not written yet");
    open.set_written(later(10));
    assert_eq!(answered(&mut open, "1", later(10)), None);
    assert_eq!(answered(&mut open, "1", later(20)), Some(1));
    // Read together with the answer, before the second question was written.
    assert_eq!(answered(&mut open, "1", later(20)), None);
    open.set_written(later(30));
    assert_eq!(answered(&mut open, "1", later(25)), None);
    assert_eq!(answered(&mut open, "1", later(40)), Some(2));
    assert!(open.is_empty());
}

#[test]
fn a_question_asked_again_is_shown_again_before_it_is_answered() {
    let mut open = PrintedQuestions::default();
    let start = Instant::now();
    let later = |millis| start + Duration::from_millis(millis);
    open.add(&question(1));
    open.add(&question(2));
    open.set_written(later(1));

    let changed = Question {
        preview: Some("+another".to_owned()),
        ..question(1)
    };
    assert!(open.add(&changed));
    assert_eq!(answered(&mut open, "1", later(2)), None);
    assert_eq!(open.first(), Some(&changed), "the next one was never shown");
    open.set_written(later(3));
    assert_eq!(answered(&mut open, "1", later(4)), Some(1));
}

#[test]
fn messages_that_meet_a_question_are_kept() {
    let mut open = PrintedQuestions::default();
    let start = Instant::now();
    let later = |millis| start + Duration::from_millis(millis);
    open.add(&question(1));
    open.set_written(later(10));

    let early = open.interpret("stop", later(5));
    assert!(matches!(early, TypedLine::Other));
    let late = open.interpret("also update the docs", later(20));
    assert!(matches!(late, TypedLine::Other));
    let word = open.interpret("yes", later(30));
    assert!(matches!(word, TypedLine::Invalid));
    assert!(!open.is_empty());
}
