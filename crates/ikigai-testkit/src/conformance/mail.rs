//! Checks of mail.

use ikigai_store::{
    CommitError, Committed, Effect, MailEffect, MailId, MailOrigin, MailState, MailTopic, Status,
};

use super::Rig;
use super::samples::{at, set_status, user_mail, user_row};
use super::workbench::Workbench;

/// E10c: mail is returned in order of sending, and consumed once, with the row that shows it.
///
/// Bounced and withdrawn mail is never delivered.
pub(super) async fn mail_is_delivered_once_bounced_or_withdrawn(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let mut holder = desk.agent("root").await;
    let sender = desk.idle_agent("sender").await;
    let mail: Vec<MailId> = (0..4).map(|_| desk.ids.mail()).collect();
    let topics = [
        MailTopic::Question,
        MailTopic::Message,
        MailTopic::Report,
        MailTopic::Failed,
    ];
    let send = |n: usize, from| {
        Effect::Mail(MailEffect::Send {
            mail: mail[n],
            to: holder.agent,
            origin: match from {
                Some(_) => MailOrigin::Agent,
                None => [MailOrigin::User, MailOrigin::Process][n / 2],
            },
            from,
            about: topics[n],
            text: format!("mail {n}\n\"'\u{1f4ec}"),
            at: at([5, 5, -1, 0][n]),
            author: None,
        })
    };
    desk.done([send(0, Some(sender)), send(1, None)]).await;
    desk.done([send(2, Some(holder.agent))]).await;
    desk.done([send(3, None)]).await;
    let again = desk.effects([send(0, None)]).await;
    assert_refused!(again, CommitError::BadBatch(_));

    let by = holder.row(1);
    let show = vec![user_row(holder.agent, "mail 1")];
    let consume = Effect::Mail(MailEffect::Consume { mail: mail[1], by });
    let unshown = desk.effects([consume.clone()]).await;
    assert_refused!(unshown, CommitError::BadBatch(_));
    holder.commit(show, vec![consume]).await.unwrap();
    desk.done([Effect::Mail(MailEffect::Withdraw { mail: mail[2] })])
        .await;
    desk.done([Effect::Mail(MailEffect::Bounce { mail: mail[3] })])
        .await;

    for gone in &mail[1..] {
        for effect in [
            Effect::Mail(MailEffect::Consume {
                mail: *gone,
                by: holder.row(2),
            }),
            Effect::Mail(MailEffect::Withdraw { mail: *gone }),
            Effect::Mail(MailEffect::Bounce { mail: *gone }),
        ] {
            let refused = holder
                .commit(vec![user_row(holder.agent, "twice")], vec![effect])
                .await;
            assert_gone(&refused, *gone);
        }
    }
    let never_sent = desk.ids.mail();
    assert_gone(
        &desk
            .effects([Effect::Mail(MailEffect::Withdraw { mail: never_sent })])
            .await,
        never_sent,
    );

    let told = desk.mail(holder.agent).await;
    let states: Vec<_> = told
        .iter()
        .map(|mail| (mail.id, mail.state, mail.shown_by))
        .collect();
    assert_eq!(
        states,
        [
            (mail[0], MailState::Queued, None),
            (mail[1], MailState::Delivered, Some(by)),
            (mail[2], MailState::Withdrawn, None),
            (mail[3], MailState::Bounced, None),
        ]
    );
    let queued = desk.store.queued_mail(holder.agent).await.unwrap();
    assert_eq!(queued, told[..1]);
    let senders: Vec<_> = told.iter().map(|mail| mail.from).collect();
    assert_eq!(senders, [Some(sender), None, Some(holder.agent), None]);
    let origins: Vec<_> = told.iter().map(|mail| mail.origin).collect();

    let agent = MailOrigin::Agent;
    assert_eq!(
        origins,
        [agent, MailOrigin::User, agent, MailOrigin::Process]
    );
    let about: Vec<_> = told.iter().map(|mail| mail.about).collect();
    assert_eq!(about, topics);
    assert_eq!(told[2].text, "mail 2\n\"'\u{1f4ec}");
    assert_eq!(told[2].sent_at, at(-1));
    assert_eq!(desk.texts(holder.agent).await, ["mail 1"]);
    assert_eq!(desk.mail(sender).await, []);
}

/// Mail of an agent names its sender, and no other mail does.
pub(super) async fn mail_names_a_sender_if_an_agent_sent_it(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let to = desk.idle_agent("root").await;
    let sender = desk.idle_agent("sender").await;
    for (origin, from) in [(MailOrigin::Agent, None), (MailOrigin::User, Some(sender))] {
        let send = Effect::Mail(MailEffect::Send {
            mail: desk.ids.mail(),
            to,
            origin,
            from,
            about: MailTopic::Message,
            text: String::new(),
            at: at(0),
            author: None,
        });
        let refused = desk.effects([send]).await;
        assert_refused!(refused, CommitError::BadBatch(_));
    }
    assert_eq!(desk.mail(to).await, []);
}

fn assert_gone(outcome: &Result<Committed, CommitError>, mail: MailId) {
    assert_refused!(outcome, CommitError::MailGone(gone) if *gone == mail);
}

/// E10c: mail to an agent that is not running is refused.
///
/// Mail that was queued before bounces in the transaction of the agent's death; mail that was
/// withdrawn or delivered before does not.
pub(super) async fn mail_to_the_dead_is_refused(rig: &dyn Rig) {
    let desk = Workbench::first(rig).await;
    let agent = desk.idle_agent("root").await;
    let send = |mail, to| user_mail(mail, to, "", at(0));
    let queued = desk.ids.mail();
    let withdrawn = desk.ids.mail();
    desk.done([send(queued, agent), send(withdrawn, agent)])
        .await;
    desk.done([Effect::Mail(MailEffect::Withdraw { mail: withdrawn })])
        .await;

    for status in [Status::Dead, Status::Reaped] {
        desk.done([set_status(agent, status)]).await;
        let refused = desk.effects([send(desk.ids.mail(), agent)]).await;
        assert_refused!(refused, CommitError::Dead(dead) if *dead == agent);
    }
    let nobody = desk.ids.agent();
    let refused = desk.effects([send(desk.ids.mail(), nobody)]).await;
    assert_refused!(refused, CommitError::NoAgent(no) if *no == nobody);
    let again = desk
        .effects([Effect::Mail(MailEffect::Bounce { mail: queued })])
        .await;
    assert_refused!(again, CommitError::MailGone(gone) if *gone == queued);

    let states: Vec<_> = desk.mail(agent).await.iter().map(|m| m.state).collect();
    assert_eq!(states, [MailState::Bounced, MailState::Withdrawn]);
}
