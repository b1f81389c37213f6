//! Topic of mail between agents, read from the sender's log.

use ikigai_core::data::{self, ToolCallData};
use ikigai_core::environment_block::framed;
use ikigai_core::{AgentId, Direction, Kind, PageQuery, Seq, Span};
use ikigai_store::{MailRecord, ReadLog, StoreError};

use crate::agent_tools::{AgentTool, SendArguments};

/// Rows of a sender that are searched for the call that sent its mail.
const SEARCHED_ROWS: usize = 512;

/// Start of the report of an agent that failed.
pub(crate) const FAILED: &str = "I could not finish: ";

/// Topic of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MailTopic {
    /// Information.
    Message,
    /// The sender waits for an answer.
    Question,
    /// Last answer of a child.
    Report,
    /// The child's turn failed.
    Failed,
}

impl MailTopic {
    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Message => "message",
            Self::Question => "question",
            Self::Report => "report",
            Self::Failed => "failed",
        }
    }
}

/// Finds the topic of mail: sent by a call of `send`, or by the end of a turn.
pub(crate) async fn topic_of(
    store: &dyn ReadLog,
    sender: AgentId,
    mail: &MailRecord,
) -> Result<MailTopic, StoreError> {
    let query = PageQuery {
        span: Span::new(sender, Seq(1), Seq(i64::MAX as u64)),
        direction: Direction::Backwards,
        limit: SEARCHED_ROWS,
    };
    for row in store.page(query).await? {
        if row.kind.read_as() != Some(Kind::ToolCall) {
            continue;
        }
        let call: ToolCallData = data::read(row.data.as_deref());
        if call.name.as_deref() != Some(AgentTool::Send.name()) {
            continue;
        }
        let arguments = call.arguments.unwrap_or_default();
        if let Ok(sent) = ikigai_tools::arguments::read::<SendArguments>(&arguments)
            && sent.values.message == mail.text
        {
            return Ok(if sent.values.question {
                MailTopic::Question
            } else {
                MailTopic::Message
            });
        }
    }
    Ok(if mail.text.starts_with(FAILED) {
        MailTopic::Failed
    } else {
        MailTopic::Report
    })
}

/// Frames the text of mail, so that it cannot pass as the user's words.
pub(crate) fn framed_mail(sender: &str, topic: MailTopic, text: &str) -> String {
    framed(
        "message",
        &[("from", sender), ("about", topic.word())],
        text,
    )
}
