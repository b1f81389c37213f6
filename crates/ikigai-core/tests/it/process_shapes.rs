//! Stored shapes of rows about background processes.

use ikigai_core::Event;
use ikigai_core::data::{ProcessCause, ProcessData, ProcessState};
use serde_json::json;

use crate::table::{A, Shape, at, some, with};

/// Returns the shapes of rows about background processes.
pub(crate) fn all() -> Vec<Shape> {
    let process = |data| Event::Process {
        command: "make".to_owned(),
        data,
    };
    let started = ProcessData {
        process: Some(1),
        state: Some(ProcessState::Started),
        call: Some(at(A, 2)),
        workdir: some("/w"),
        ..ProcessData::default()
    };
    let started_json = json!({
        "process": 1, "state": "started", "call": {"agent": A, "seq": 2}, "workdir": "/w"
    });
    let ended = |cause, exit, signal| ProcessData {
        process: Some(1),
        state: Some(ProcessState::Ended),
        cause: Some(cause),
        exit,
        signal,
        ..ProcessData::default()
    };
    let mut shapes = vec![(process(started), Some("make"), Some(started_json))];
    let ends = [
        (
            ProcessCause::Exit,
            Some(2),
            None,
            json!({"cause": "exit", "exit": 2}),
        ),
        (
            ProcessCause::Stop,
            None,
            Some(15),
            json!({"cause": "stop", "signal": 15}),
        ),
        (ProcessCause::Kill, None, None, json!({"cause": "kill"})),
        (ProcessCause::Lost, None, None, json!({"cause": "lost"})),
    ];
    for (cause, exit, signal, more) in ends {
        let data = with(json!({"process": 1, "state": "ended"}), &more);
        shapes.push((
            process(ended(cause, exit, signal)),
            Some("make"),
            Some(data),
        ));
    }
    shapes
}
