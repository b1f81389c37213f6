use super::*;

fn agent(byte: u8) -> AgentId {
    AgentId::from_random([byte; 16]).unwrap()
}

fn pending(number: u128, text: &str) -> PendingMessage {
    PendingMessage {
        agent: agent(1),
        submission: Submission {
            id: MailId(number),
            at: Micros(i64::try_from(number).unwrap()),
            input: UserInput::parse(text),
        },
    }
}

#[test]
fn drafts_and_pending_messages_outlive_their_process_and_are_claimed_once() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("state/drafts");
    let mut first = DraftFiles::at(directory.clone());
    first.save_draft(agent(1), "half a sen").unwrap();
    first.save_draft(agent(2), "another").unwrap();
    first.save_pending(&pending(7, "later\nline")).unwrap();
    first.save_pending(&pending(5, "sooner")).unwrap();

    let mut second = DraftFiles::at(directory.clone());
    assert_eq!(second.claim_draft(agent(1)).unwrap(), None, "it lives");
    assert_eq!(second.claim_pending().unwrap(), []);
    drop(first);
    let draft = second.claim_draft(agent(1)).unwrap().unwrap();
    let messages = second.claim_pending().unwrap();

    assert_eq!(draft.text, "half a sen");
    assert_eq!(messages, [pending(5, "sooner"), pending(7, "later\nline")]);
    let mut third = DraftFiles::at(directory.clone());
    assert_eq!(third.claim_draft(agent(1)).unwrap(), None);
    assert_eq!(third.claim_pending().unwrap(), []);
    assert_eq!(
        third.claim_draft(agent(2)).unwrap().unwrap().text,
        "another"
    );
    second.drop_pending(MailId(5)).unwrap();
    second.save_draft(agent(1), "").unwrap();
    drop(second);
    assert_eq!(third.claim_pending().unwrap(), [pending(7, "later\nline")]);
    assert_eq!(third.claim_draft(agent(1)).unwrap(), None);
}

#[test]
fn only_their_user_can_read_the_files() {
    let place = tempfile::tempdir().unwrap();
    let directory = place.path().join("drafts");
    fs::create_dir(&directory).unwrap();
    fs::set_permissions(&directory, Permissions::from_mode(0o755)).unwrap();
    let mut files = DraftFiles::at(directory.clone());

    files.save_draft(agent(1), "secret").unwrap();
    files.save_pending(&pending(1, "secret")).unwrap();

    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    for entry in fs::read_dir(&directory).unwrap() {
        assert_eq!(mode(&entry.unwrap().path()), 0o600);
    }
}

#[test]
fn drafts_of_several_dead_processes_are_joined() {
    let place = tempfile::tempdir().unwrap();
    for text in ["one", "two"] {
        let mut files = DraftFiles::at(place.path().to_owned());
        files.save_draft(agent(1), text).unwrap();
    }

    let mut files = DraftFiles::at(place.path().to_owned());
    let draft = files.claim_draft(agent(1)).unwrap().unwrap();

    assert!(
        ["one\ntwo", "two\none"].contains(&&*draft.text),
        "{draft:?}"
    );
}

#[test]
fn broken_files_are_left_alone() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("x.1-2.pending"), "{").unwrap();
    fs::write(place.path().join("nonsense"), "").unwrap();

    let mut files = DraftFiles::at(place.path().to_owned());

    assert_eq!(files.claim_pending().unwrap(), []);
    assert!(place.path().join("x.1-2.pending").exists());
}
