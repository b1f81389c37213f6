use ikigai_core::{AgentId, Seq};

use super::*;

fn call(seq: u64) -> RowRef {
    RowRef::new(AgentId::from_random([1; 16]).unwrap(), Seq(seq))
}

#[test]
fn a_held_key_answers_only_the_first_question() {
    let mut repeat = KeyRepeat::default();
    let start = Instant::now();
    let mut now = start;

    assert!(repeat.press(call(1), Action::AnswerOnce, now));
    // Each question appears before the next repetition.
    for seq in 2..20 {
        now += Duration::from_millis(33);
        assert_eq!(repeat.due(now), None);
        assert!(!repeat.press(call(seq), Action::AnswerOnce, now));
    }
    assert_eq!(repeat.due(now + Duration::from_secs(5)), None);
    assert!(repeat.press(call(20), Action::AnswerOnce, now + Duration::from_secs(5)));
}

#[test]
fn a_quick_answer_counts_once_no_key_follows() {
    let mut repeat = KeyRepeat::default();
    let start = Instant::now();
    let later = |millis| start + Duration::from_millis(millis);

    assert!(repeat.press(call(1), Action::AnswerOnce, later(0)));
    assert!(!repeat.press(call(2), Action::AnswerAlways, later(20)));
    assert_eq!(repeat.due_at(), Some(later(80)));
    assert_eq!(repeat.due(later(79)), None);
    let due = repeat.due(later(80));
    assert_eq!(due, Some((call(2), Action::AnswerAlways)));
    assert_eq!(repeat.due(later(81)), None);

    assert!(!repeat.press(call(3), Action::AnswerOnce, later(30)));
    repeat.cancel();
    assert_eq!(repeat.due(later(500)), None);
}
