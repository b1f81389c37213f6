//! The page of the documentation about the control socket, made of the types.

use std::fmt::Write as _;

use super::{
    AgentSeen, ApprovalWord, ControlAnswer, ControlOutput, ControlRequest, CursorSeen, Framebuffer,
    OwnerSeen, QuestionSeen, Released, RowSeen, SpanSeen, StyleSeen, TokenCache, TurnSeen, Version,
};

/// Introduction, before the requests.
const BEFORE: &str = "\
# The control socket

A running ikigai, on a terminal or with `--headless`, listens at a socket. Programs, tests and other agents do there what
a person does with keys and eyes.

This page is made of the program's types. To make it again:
`IKIGAI_WRITE_DOCS=1 cargo test -p ikigai-tui control_page`.

## Where it is

`$IKIGAI_RUNTIME_DIR/ikigai-<pid>.sock` if that variable is set, else `$XDG_RUNTIME_DIR/ikigai/ikigai-<pid>.sock`, else
`~/.local/state/ikigai/run/ikigai-<pid>.sock`. The file is for its owner alone (0600), and so is a directory that ikigai
makes (0700); whoever connects as another user is not heard. What a dead process has left is removed by the next one. A directory that is a
link, belongs to another user, or can be written or replaced by other users is refused, by `ikigai ctl` too.

`ikigai --headless [--size 100x50]` has no terminal and reads no input. When it is ready it prints the path of its socket
on one line. SIGINT, SIGTERM and SIGHUP end it as leaving does, within two seconds, and a second signal at once: turns are stored as interrupted, leases are given back, the
socket is removed. With `--until-idle` it ends as soon as no agent works.

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

`ikigai ctl` finds the one ikigai that runs, or takes `--pid` or `--socket`. It prints the answer as JSON, errors on
standard error. Exit codes: 0 done · 1 refused, or `wait_idle` was not idle in time · 2 bad arguments · 4 no ikigai, or
several. Its verbs are the requests below; `ikigai ctl --help` lists them.

## Requests

One line of JSON is one request; one line comes back, and the connection is closed. A request has at most 1 MiB and 10
seconds to come; there may be 256 clients at once. What is no request, or cannot be done, is answered with
`{\"error\":\"…\"}`. Fields that are not known are ignored. An agent is named by its name, its id, or the beginning of its id;
without a name, the one on the screen is meant.

Requests are carried out one after the other, between two steps of the screen. `send_keys`, `submit`, `approve` and
`interrupt` are answered when the agent has heard what it was told (a command that is carried out at once is done by then),
or after a second: so the next request sees what they did, and `wait_idle` counts them as work.
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
## Two programs and one agent

One process holds an agent; others look on. What is typed for it on another screen, or said with `ikigai run`, goes to
its holder as `submit`, and as mail if the holder does not answer; the second one says which. `/take` asks the holder to
`release` it.

`b` at the question whether to leave, and a terminal that is gone (`on_hangup = \"background\"`, the default), start
`ikigai --headless --until-idle` on the same store. Turns are stored as stopped and gone on with there. The next `ikigai`
on a terminal asks it to `release` everything and goes on with it.
";

/// An agent of the examples.
const ID: &str = "2lu06osJQoeSDDSxzEz63Q";
const NAME: &str = "fix-parser";
const HASH: &str = "9f2b6c0d1e8a4735";

fn said(said: ControlOutput) -> Vec<ControlAnswer> {
    vec![ControlAnswer::Said(said)]
}

fn of_the_screen() -> Vec<RequestDoc> {
    vec![
        RequestDoc {
            about: "What a terminal would show: every row, its text in spans of one style (`fg bold dim reverse underline \
                    italic`, those that hold; `fg` is the number of a colour), and the cursor.",
            request: ControlRequest::ReadFramebuffer,
            answers: said(ControlOutput::Framebuffer(framebuffer())),
        },
        RequestDoc {
            about: "Types keys, as a terminal sends them. `\\r \\n \\t \\\\ \\xNN` are unescaped; any other backslash is \
                    itself. At most 16,384 keys; more is pasted (`\\x1b[200~ … \\x1b[201~`).",
            request: ControlRequest::SendKeys {
                keys: "what is 2 + 2\\r".to_owned(),
            },
            answers: vec![ControlAnswer::OK],
        },
        RequestDoc {
            about: "Waits until the agent on the screen, and those that it started, have nothing to do; at once if that is \
                    so. While a question is open, of the agent or of one that it started, the answer is `\"asks\":true`, \
                    though other calls run, as soon as the question takes keys. At most an hour; a minute if no time is given.",
            request: ControlRequest::WaitIdle { timeout_ms: 5000 },
            answers: vec![
                ControlAnswer::Said(ControlOutput::Idle { asks: false }),
                ControlAnswer::Said(ControlOutput::Idle { asks: true }),
                ControlAnswer::Said(ControlOutput::Timeout),
            ],
        },
        RequestDoc {
            about: "What fills the window of the agent on the screen, in tokens: `total_tokens` are the turns in the window \
                    (0 after `/clear`), `fixed_tokens` system prompt, pins and tools beside them, `context_start_index` how \
                    many turns came before and are not sent.",
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
            about: "Says something to an agent, or has a command carried out, as if it had been typed for it.

The answer is `ok` once the line is stored, queued or carried out. A line that is not is answered with
`{\"type\":\"pending\",\"reason\":\"store is away: …\"}`: it is kept, shown above the input, and stored once when the store is back. A
command that could not be stored, or a message that names a missing file, is an error, and its text is back in the input.",
            request: ControlRequest::Submit {
                text: "add tests".to_owned(),
                agent: agent(),
            },
            answers: vec![ControlAnswer::OK],
        },
        RequestDoc {
            about: "All agents that are not reaped, parents before their children, who holds them, and what they ask. Of a \
                    question `shown`, `workdir` and `preview` (the diff of an edit) are whole; control, bidirectional and \
                    invisible characters are spelled out (`␍`, `⟨U+202E⟩`). `call` is the hash of the exact call: the first \
                    16 hexadecimal digits of the SHA-256 of tool, arguments as the model wrote them, working directory and \
                    `pattern`, each followed by a zero byte.",
            request: ControlRequest::Agents,
            answers: said(ControlOutput::Agents {
                agents: vec![agent_seen()],
            }),
        },
        RequestDoc {
            about: "The rows of an agent's log from its first on, or those after row `after`, one a line as `ikigai log \
                    --json` prints them. With `follow` the connection stays open and rows come as they are stored, until the \
                    client closes it.",
            request: ControlRequest::Events {
                agent: agent(),
                after: Some(41),
                follow: true,
            },
            answers: Vec::new(),
        },
        RequestDoc {
            about: "Answers a question: `once`, `always` (with `pattern`, or the one that was proposed) or `no` (with a \
                    `reason` for the model). `once` and `always` must give the `call` of the question as `agents` tells it, \
                    and are refused if no open question has it; `no` without a `call` answers the first question of the \
                    agent, or of the agent that asks. It counts at once, whatever was typed before.",
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
            about: "Interrupts an agent, as Esc does.",
            request: ControlRequest::Interrupt { agent: agent() },
            answers: vec![ControlAnswer::OK],
        },
        RequestDoc {
            about: "Lets go of an agent, or of all if none is named, so that another process can take it. A turn is stored \
                    as interrupted; `worked` says whether there was one.",
            request: ControlRequest::Release { agent: agent() },
            answers: said(ControlOutput::Released {
                agents: vec![Released {
                    id: ID.to_owned(),
                    worked: true,
                }],
            }),
        },
        RequestDoc {
            about: "Who answers: `mode` is `screen`, `headless`, or `background` for one that ends by itself.",
            request: ControlRequest::Version,
            answers: said(ControlOutput::Version(Version {
                version: "0.1.0".to_owned(),
                pid: 4711,
                mode: "headless".to_owned(),
                agent: ID.to_owned(),
                name: NAME.to_owned(),
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
        }],
    }
}
