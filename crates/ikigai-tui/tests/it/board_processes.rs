//! Background processes on the board, and below the conversation.

use ikigai_core::AgentId;
use ikigai_engine::ListedProcess;

use crate::support::{SIZES, Stage};

fn process(agent: AgentId, number: u64, command: &str, last_line: &str) -> ListedProcess {
    ListedProcess {
        agent,
        number,
        command: command.to_owned(),
        last_line: last_line.to_owned(),
    }
}

/// Processes stand below their agent, with their last line; no key marks them.
#[tokio::test]
async fn processes_stand_below_their_agent() {
    for size in SIZES {
        let mut stage = Stage::new(size).await;
        stage.talk("hello", "Hi.").await;
        let own = stage.current();
        let listed = vec![
            process(own, 1, "python3\nserver.py", "GET /\u{1b}[2J index"),
            process(own, 2, "make", ""),
        ];

        for keys in ["ctrl-x a", "t"] {
            stage.press(keys).await;
            stage.driver.app.set_processes(listed.clone());
            let text = stage.text();

            let agent = stage.row_with("›parser");
            let first = stage.row_with("process 1  python3");
            let second = stage.row_with("process 2  make");
            assert!((agent + 1, agent + 2) == (first, second), "{text}");
            assert!(!text.contains('\u{1b}'), "{text}");
            if size.0 >= 80 && size.0 < 120 {
                assert!(text.contains("server.py · GET /"), "{text}");
            }
        }
        stage.press("down enter").await;
        assert_eq!(stage.current(), own);
    }
}

/// The key for all output also shows the processes of the agent on the screen.
#[tokio::test]
async fn all_output_includes_background_processes() {
    let mut stage = Stage::new((80, 24)).await;
    stage.talk("hello", "Hi.").await;
    let own = stage.current();
    let long = format!("python3 server.py {}", "x".repeat(200));
    let listed = vec![process(own, 1, &long, "GET /")];
    stage.driver.app.set_processes(listed.clone());
    let folded = stage.text();

    stage.press("ctrl-o").await;
    stage.driver.app.set_processes(listed);
    let all = stage.text();

    assert!(!folded.contains("process 1"), "{folded}");
    assert!(
        all.contains("process 1  python3 server.py xxx") && all.contains("x… · GET /"),
        "{all}"
    );
}
