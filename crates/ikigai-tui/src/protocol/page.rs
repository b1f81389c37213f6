//! The page of the documentation about the control socket, made of the types.

use std::fmt::Write as _;

use super::{
    AgentSeen, ApprovalWord, ControlAnswer, ControlOutput, ControlRequest, CursorSeen, Framebuffer,
    OwnerSeen, QuestionSeen, Released, RowSeen, SpanSeen, StyleSeen, TokenCache, TurnSeen, Version,
};

/// Introduction, before the requests.
const BEFORE: &str = "\
# Control socket

*For programs, tests and agents that control a running ikigai.*

A running ikigai, on a terminal or with `--headless`, listens on a Unix socket. A program can do there what a user does at the screen.

This page is generated: `IKIGAI_WRITE_DOCS=1 cargo test -p ikigai-tui control_page`.

## Path

`$IKIGAI_RUNTIME_DIR/ikigai-<pid>.sock` if that variable is set, else `$XDG_RUNTIME_DIR/ikigai/ikigai-<pid>.sock`, else
`~/.local/state/ikigai/run/ikigai-<pid>.sock`. Only the owner can use the socket (mode 0600) and the directories that ikigai creates
(0700); connections of other users are refused. The next ikigai removes sockets of dead processes. ikigai and `ikigai ctl` refuse a directory that is a
link, belongs to another user, or can be written or replaced by other users.

`ikigai --headless [--size 100x50]` needs no terminal and reads no input. When it is ready it prints the path of its socket. SIGINT, SIGTERM and
SIGHUP end it within two seconds, a second signal at once: running turns are stored as interrupted, agents are released, and the socket is
removed. With `--until-idle` it exits when all agents are idle.

## A session in ten lines

```sh
exec 3< <(ikigai --headless) && pid=$!
read -r socket <&3
ikigai ctl send_keys 'list the rust files\\r'
ikigai ctl wait_idle 30000 || exit
ikigai ctl submit '/mark here'
ikigai ctl submit 'what did I say'
ikigai ctl wait_idle 30000 || exit
ikigai ctl read_framebuffer --text
ikigai ctl read_token_cache
kill $pid
```

`ikigai ctl` finds the running ikigai; if several run, choose one with `--pid` or `--socket`. It prints the answer as JSON, and errors to stderr. Exit
codes: 0 success · 1 refused, or timeout of `wait_idle` · 2 invalid arguments · 4 no ikigai, or several. Its commands are the requests below.

## Requests

A request is one line of JSON. The answer is one line; then the connection is closed. A request may have 1 MiB and take 10 seconds; 256 clients may
be connected. Errors are answered with `{\"error\":\"…\"}`. Unknown fields are ignored. An agent is given by its name, its id, or the beginning of
its id; the default is the agent on the screen.

Requests are executed one after the other. `send_keys`, `submit`, `approve` and `interrupt` are answered when the agent has received them (commands
without a turn are then done), or after one second. So the next request sees their effect, and `wait_idle` waits for them.
";

/// Documentation of one request: purpose, request and answers.
struct RequestDoc {
    about: &'static str,
    request: ControlRequest,
    answers: Vec<ControlAnswer>,
}

/// Generates the page.
pub fn page() -> String {
    let mut page = BEFORE.to_owned();
    for entry in of_the_screen().into_iter().chain(of_agents()) {
        let request = serde_json::to_string(&entry.request).unwrap_or_default();
        let name = request.split('"').nth(3).unwrap_or_default();
        let _ = write!(
            page,
            "\n### {name}\n\n{}\n\n```json\n{request}\n",
            entry.about
        );
        for answer in entry.answers {
            page.push_str(&answer.to_line());
        }
        page.push_str("```\n");
    }
    page.push_str(AFTER);
    page
}

const AFTER: &str = "
## Two processes and one agent

One process owns an agent; others watch it. A message that is typed on another screen, or sent with `ikigai run`, goes to the owner as
`submit`, or as mail if the owner does not answer; the sender sees which. `/take` asks the owner to `release` the agent.

If you quit with `b`, or the terminal closes (`on_hangup = \"background\"`, the default), `ikigai --headless --until-idle` starts on the same
database and continues the interrupted turns. The next `ikigai` on a terminal asks it to `release` its agents and continues them.
";

/// An agent of the examples.
const ID: &str = "2lu06osJQoeSDDSxzEz63Q";
const NAME: &str = "fix-parser";
const HASH: &str = "9f2b6c0d1e8a4735";

fn answers_of(said: ControlOutput) -> Vec<ControlAnswer> {
    vec![ControlAnswer::Said(said)]
}

fn of_the_screen() -> Vec<RequestDoc> {
    vec![
        RequestDoc {
            about: "The screen: every line, with its text in spans of one style (`fg bold dim reverse underline italic`, \
                    false ones omitted; `fg` is the number of a colour), and the cursor.",
            request: ControlRequest::ReadFramebuffer,
            answers: answers_of(ControlOutput::Framebuffer(framebuffer())),
        },
        RequestDoc {
            about: "Types keys, as a terminal sends them. Escapes: `\\r \\n \\t \\\\ \\xNN`; any other backslash is literal. \
                    At most 16,384 keys; paste longer texts (`\\x1b[200~ … \\x1b[201~`).",
            request: ControlRequest::SendKeys {
                keys: "what is 2 + 2\\r".to_owned(),
            },
            answers: vec![ControlAnswer::OK],
        },
        RequestDoc {
            about: "Waits until the agent on the screen and its descendants are idle. If one of them needs approval, the \
                    answer is `\"asks\":true`, even if other calls still run. The timeout is at most an hour; default: a \
                    minute.",
            request: ControlRequest::WaitIdle { timeout_ms: 5000 },
            answers: vec![
                ControlAnswer::Said(ControlOutput::Idle { asks: false }),
                ControlAnswer::Said(ControlOutput::Idle { asks: true }),
                ControlAnswer::Said(ControlOutput::Timeout),
            ],
        },
        RequestDoc {
            about: "Use of the context window by the agent on the screen, in tokens: `total_tokens` of the turns in the \
                    window (0 after `/clear`), `fixed_tokens` of system prompt, pins and tools. `context_start_index` is the \
                    number of earlier turns that are not sent.",
            request: ControlRequest::ReadTokenCache,
            answers: vec![ControlAnswer::TokenCache(TokenCache {
                total_tokens: 180,
                fixed_tokens: 2175,
                budget: 200_000,
                turn_count: 2,
                context_start_index: 3,
                turns: vec![
                    TurnSeen {
                        index: 3,
                        tokens: 100,
                    },
                    TurnSeen {
                        index: 4,
                        tokens: 80,
                    },
                ],
            })],
        },
    ]
}

fn of_agents() -> Vec<RequestDoc> {
    let agent = || Some(NAME.to_owned());
    vec![
        RequestDoc {
            about: "Sends a message or command to an agent, as if you typed it there.

The answer is `ok` when the line is stored, queued or executed. While the store is away the answer to a message is
`{\"type\":\"pending\",\"reason\":\"store is away: …\"}`: it is kept, shown above the input, and stored when the store is back. A command
that cannot be stored, or a message that names a missing file, is an error, and its text returns to the input.",
            request: ControlRequest::Submit {
                text: "add tests".to_owned(),
                agent: agent(),
            },
            answers: vec![ControlAnswer::OK],
        },
        RequestDoc {
            about: "All agents except reaped ones, parents before children, with their owners and approval questions. \
                    `shown`, `workdir` and `preview` (the diff of an edit) are complete; control, bidirectional and \
                    invisible characters are spelled out (`␍`, `⟨U+202E⟩`). `call` is the hash of the exact call: the first \
                    16 hexadecimal digits of the SHA-256 of tool, arguments as the model wrote them, working directory and \
                    `pattern`, each followed by a zero byte.",
            request: ControlRequest::Agents,
            answers: answers_of(ControlOutput::Agents {
                agents: vec![agent_seen()],
            }),
        },
        RequestDoc {
            about: "The events of an agent, all or those after number `after`, one per line as `ikigai log --json` prints \
                    them. With `follow` the connection stays open and sends new events until the client closes it.",
            request: ControlRequest::Events {
                agent: agent(),
                after: Some(41),
                follow: true,
            },
            answers: Vec::new(),
        },
        RequestDoc {
            about: "Answers an approval question: `once`, `always` (with `pattern`, else the proposed one) or `no` (with a \
                    `reason` for the model). `once` and `always` need the `call` of an open question, as `agents` lists \
                    it; `no` without a `call` answers the first question of the agent, or of the agent that asks. It takes \
                    effect at once.",
            request: ControlRequest::Approve {
                answer: ApprovalWord::Once,
                agent: agent(),
                call: Some(HASH.to_owned()),
                pattern: None,
                reason: None,
            },
            answers: vec![ControlAnswer::OK],
        },
        RequestDoc {
            about: "Interrupts an agent, like Esc.",
            request: ControlRequest::Interrupt { agent: agent() },
            answers: vec![ControlAnswer::OK],
        },
        RequestDoc {
            about: "Releases an agent, or all of them, so that another process can take over. A running turn is stored as \
                    interrupted; `worked` says whether there was one.",
            request: ControlRequest::Release { agent: agent() },
            answers: answers_of(ControlOutput::Released {
                agents: vec![Released {
                    id: ID.to_owned(),
                    worked: true,
                }],
            }),
        },
        RequestDoc {
            about: "Version and process. `mode` is `screen`, `headless`, or `background` (exits by itself); \
                    `sandbox` says whether commands run in it.",
            request: ControlRequest::Version,
            answers: answers_of(ControlOutput::Version(Version {
                version: "0.1.0".to_owned(),
                pid: 4711,
                mode: "headless".to_owned(),
                agent: ID.to_owned(),
                name: NAME.to_owned(),
                sandbox: Some(true),
            })),
        },
    ]
}

fn framebuffer() -> Framebuffer {
    let span = |text: &str, style| SpanSeen {
        text: text.to_owned(),
        style,
    };
    let sign = StyleSeen {
        fg: Some(4),
        bold: true,
        ..StyleSeen::default()
    };
    Framebuffer {
        rows: 2,
        cols: 20,
        cursor: CursorSeen {
            row: 1,
            col: 2,
            visible: true,
        },
        lines: vec![
            RowSeen {
                row: 0,
                spans: vec![span("❯", sign), span(" hello", StyleSeen::default())],
            },
            RowSeen {
                row: 1,
                spans: Vec::new(),
            },
        ],
    }
}

fn agent_seen() -> AgentSeen {
    AgentSeen {
        id: ID.to_owned(),
        name: NAME.to_owned(),
        parent: None,
        status: "running".to_owned(),
        working: true,
        current: true,
        head: 12,
        owner: Some(OwnerSeen {
            host: "here".to_owned(),
            pid: 4711,
        }),
        questions: vec![QuestionSeen {
            tool: "bash".to_owned(),
            shown: "git push".to_owned(),
            workdir: "/src/parser".to_owned(),
            preview: None,
            pattern: "git push".to_owned(),
            call: HASH.to_owned(),
            row: Some(12),
        }],
    }
}
