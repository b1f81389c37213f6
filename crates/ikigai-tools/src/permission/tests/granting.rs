//! Tests of tags, and of the modes and rules that they put in force.

use ikigai_core::data::{ForkData, ForkRole};
use ikigai_core::grants::GrantScope;
use ikigai_core::settings::{Approve, Rule};
use ikigai_core::{AgentId, AgentState, Event, Micros, Row, RowRef, Seq, Settings, StoredKind};

use crate::permission::Grant;
use crate::permission::grants::{GrantKey, hmac};

const OWN: GrantKey = GrantKey::new([7; 32]);
const FOREIGN: GrantKey = GrantKey::new([8; 32]);

fn agent(number: u8) -> AgentId {
    AgentId::from_random([number; 16]).unwrap()
}

fn rule(pattern: &str) -> Rule {
    Rule {
        tool: Some("bash".to_owned()),
        pattern: Some(pattern.to_owned()),
    }
}

fn mode(mode: Approve) -> Settings {
    Settings {
        approve: Some(mode),
        ..Settings::default()
    }
}

fn rules(patterns: &[&str]) -> Settings {
    Settings {
        rules: Some(patterns.iter().map(|pattern| rule(pattern)).collect()),
        ..Settings::default()
    }
}

/// Log of one agent.
struct Log(AgentState);

impl Log {
    fn new() -> Self {
        Self(AgentState::new(agent(1)))
    }

    fn append(&mut self, event: Event) {
        let at = RowRef::new(self.0.agent(), self.0.head().next());
        let row = event.into_row(at.agent, Micros(1));
        let row = Row {
            at,
            kind: StoredKind::Known(row.kind),
            content: row.content,
            data: row.data,
            created_at: row.created_at,
            author: None,
        };
        self.0.apply(&row).unwrap();
    }

    /// Stores settings with this tag.
    fn set(&mut self, settings: &Settings, grant: Option<String>) {
        let mut event = Event::set("approve", settings.as_set());
        if let Event::Command { data, .. } = &mut event {
            data.grant = grant;
        }
        self.append(event);
    }

    /// Stores settings, tagged with this key.
    fn grant(&mut self, settings: &Settings, key: GrantKey) {
        let seq = self.0.head().next();
        let tag = key.tag(self.0.agent(), seq, &GrantScope::of_settings(settings));
        self.set(settings, Some(tag));
    }

    /// Returns the mode and patterns in force, live and after a restart.
    fn in_force(&self) -> (Approve, Vec<String>) {
        let Grant { mode, rules } = Grant::in_force(&self.0, || OWN);
        let patterns = rules.into_iter().filter_map(|rule| rule.pattern);
        (mode, patterns.collect())
    }

    fn mode(&self) -> Approve {
        self.in_force().0
    }
}

/// RFC 4231, cases 1, 2, 3 and 6.
#[test]
fn hmac_gives_the_published_values() {
    let cases: [(&[u8], &[u8], &str); 4] = [
        (
            &[0x0b; 20],
            b"Hi There",
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
        ),
        (
            b"Jefe",
            b"what do ya want for nothing?",
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
        ),
        (
            &[0xaa; 20],
            &[0xdd; 50],
            "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
        ),
        (
            &[0xaa; 131],
            b"Test Using Larger Than Block-Size Key - Hash Key First",
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
        ),
    ];
    for (key, message, expected) in cases {
        let (begin, end) = message.split_at(message.len() / 2);
        let mac = hmac(key, &[begin, end]);
        let expected: Vec<u8> = (0..32)
            .map(|at| u8::from_str_radix(&expected[2 * at..2 * at + 2], 16).unwrap())
            .collect();
        assert_eq!(mac.to_vec(), expected);
    }
}

/// E22
#[test]
fn a_mode_is_in_force_only_with_a_tag_of_its_own_row() {
    let mut log = Log::new();
    assert_eq!(log.mode(), Approve::Ask);
    log.set(&mode(Approve::All), None);
    assert_eq!(log.mode(), Approve::Ask, "as in an older store");
    log.grant(&mode(Approve::All), FOREIGN);
    assert_eq!(log.mode(), Approve::Ask, "of another user or machine");
    log.grant(&mode(Approve::All), OWN);
    assert_eq!(log.mode(), Approve::All);
    let tag = log.0.grants().mode.clone().unwrap().tag;

    log.set(&mode(Approve::Edits), None);
    assert_eq!(log.mode(), Approve::Edits, "narrowing needs no tag");
    log.set(&mode(Approve::All), None);
    assert_eq!(log.mode(), Approve::Ask, "widening does");
    log.set(&mode(Approve::All), Some(tag.clone()));
    assert_eq!(log.mode(), Approve::Ask, "the tag of another position");
    for wrong in ["", &tag[1..], &tag.to_uppercase(), &format!("{tag}0")] {
        log.set(&mode(Approve::All), Some(wrong.to_owned()));
        assert_eq!(log.mode(), Approve::Ask, "{wrong}");
    }
    log.set(&mode(Approve::Read), None);
    assert_eq!(log.mode(), Approve::Read);
    log.grant(&mode(Approve::Edits), OWN);
    log.set(&Settings::default(), Some(tag));
    assert_eq!(
        log.mode(),
        Approve::Edits,
        "a row that sets nothing changes nothing"
    );
}

/// E22
#[test]
fn a_tag_covers_agent_mode_and_rules() {
    let seq = Seq(3);
    let scope = |settings: &Settings| GrantScope::of_settings(settings);
    let edits = OWN.tag(agent(1), seq, &scope(&mode(Approve::Edits)));

    let others = [
        OWN.tag(agent(2), seq, &scope(&mode(Approve::Edits))),
        OWN.tag(agent(1), Seq(4), &scope(&mode(Approve::Edits))),
        OWN.tag(agent(1), seq, &scope(&mode(Approve::All))),
        OWN.tag(agent(1), seq, &scope(&rules(&["ls"]))),
        OWN.tag(agent(1), seq, &scope(&rules(&["ls", "rm"]))),
        OWN.tag(agent(1), seq, &GrantScope::default()),
        FOREIGN.tag(agent(1), seq, &scope(&mode(Approve::Edits))),
    ];

    for (index, other) in others.iter().enumerate() {
        assert_ne!(*other, edits);
        assert!(!others[..index].contains(other));
    }
}

/// E22
#[test]
fn rules_are_in_force_as_far_as_they_were_granted() {
    let patterns = |log: &Log| log.in_force().1;
    let mut log = Log::new();
    log.set(&rules(&["old"]), None);
    assert_eq!(patterns(&log), [] as [&str; 0]);
    log.grant(&rules(&["one", "two"]), OWN);
    assert_eq!(patterns(&log), ["one", "two"]);
    log.set(&rules(&["two"]), None);
    assert_eq!(patterns(&log), ["two"], "taking one back needs no tag");
    log.set(&rules(&["two", "one"]), None);
    assert_eq!(
        patterns(&log),
        [] as [&str; 0],
        "adding one does, also one that was there"
    );
    log.grant(&rules(&["two"]), OWN);
    log.grant(&mode(Approve::All), FOREIGN);
    assert_eq!(log.in_force(), (Approve::Ask, vec!["two".to_owned()]));
    log.grant(&mode(Approve::Edits), OWN);
    log.grant(&rules(&["*"]), FOREIGN);
    assert_eq!(log.in_force(), (Approve::Edits, Vec::new()));
}

/// E22
#[test]
fn a_child_has_what_the_tag_of_its_first_row_covers() {
    let settings = Settings {
        rules: rules(&["one"]).rules,
        ..mode(Approve::All)
    };
    let scope = GrantScope::of_settings(&settings);
    let tags = [
        (Some(OWN.tag(agent(1), Seq(1), &scope)), Approve::All, 1),
        (Some(OWN.tag(agent(2), Seq(1), &scope)), Approve::Ask, 0),
        (Some(FOREIGN.tag(agent(1), Seq(1), &scope)), Approve::Ask, 0),
        (None, Approve::Ask, 0),
    ];
    for (grant, mode, count) in tags {
        let mut log = Log::new();
        let data = ForkData {
            role: Some(ForkRole::Child),
            parent_uuid: Some(agent(9)),
            settings: Some(settings.clone()),
            grant,
            ..ForkData::default()
        };
        log.append(Event::Fork {
            text: "Forked".to_owned(),
            data: Box::new(data),
        });
        let (in_force, patterns) = log.in_force();
        assert_eq!((in_force, patterns.len()), (mode, count));
    }
}
