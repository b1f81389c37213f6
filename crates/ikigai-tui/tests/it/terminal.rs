//! A small program with a screen in a real terminal: every exit restores the terminal.

use std::time::Duration;

use ikigai_testkit::pty::{Pty, command};
use ikigai_tui::key::{KeyCode, KeyPress, TerminalEvent};
use ikigai_tui::look::Tone;
use ikigai_tui::paint::{Grid, Painter, Theme};
use ikigai_tui::terminal::{SignalEvent, Signals, Terminal, TerminalError, hold_panics};
use rustix::process::{Pid, Signal, kill_process};

/// Makes this test program run the program below.
const ARGUMENTS: [&str; 4] = ["--exact", "terminal::program", "--ignored", "--nocapture"];

/// Starts the program, and waits for its screen.
fn started() -> Pty {
    let mut command = command(std::env::current_exe().unwrap());
    command.args(ARGUMENTS);
    let mut pty = Pty::start(command, 60, 24);
    wait_for_screen(&mut pty);
    pty
}

fn wait_for_screen(pty: &mut Pty) {
    pty.wait_for("its screen", |screen| {
        screen.alternate_screen() && screen.contents().contains("pid ")
    });
}

/// Returns the process id that the screen shows.
fn pid(pty: &Pty) -> Pid {
    let text = pty.text();
    let (_, after) = text.split_once("pid ").unwrap();
    let number = after.split_whitespace().next().unwrap();
    Pid::from_raw(number.parse().unwrap()).unwrap()
}

/// Returns the terminal states that differ from those before the screen.
fn left_behind(pty: &Pty) -> Vec<&'static str> {
    let screen = pty.screen();
    let table = [
        (pty.modes() != *pty.modes_at_start(), "modes"),
        (screen.alternate_screen(), "alternate screen"),
        (screen.hide_cursor(), "hidden cursor"),
        (screen.bracketed_paste(), "bracketed paste"),
        (
            screen.mouse_protocol_mode() != vt100::MouseProtocolMode::None,
            "mouse",
        ),
        (!pty.text().contains("running 1 test"), "text"),
    ];
    table
        .into_iter()
        .filter_map(|(is, what)| is.then_some(what))
        .collect()
}

#[test]
fn keys_are_shown_and_an_idle_screen_writes_nothing() {
    let mut pty = started();

    pty.send("\x1b");
    pty.wait_for_text("Escape");
    pty.send("\x1b[200~a\rb\x1b[201~");
    pty.wait_for_text("Paste(\"a\\nb\")");
    pty.resize(70, 14);
    pty.wait_for_text("70 columns, 14 rows");

    assert_eq!(pty.listen(Duration::from_millis(300)), 0);
    assert_eq!(pty.screen().cursor_position(), (3, 2));
    assert_eq!(left_behind(&pty).len(), 5);
}

#[test]
fn every_way_out_leaves_the_terminal_as_it_was() {
    let ways = [
        ("q", None),
        ("p", None),
        ("", Some(Signal::TERM)),
        ("", Some(Signal::HUP)),
        ("", Some(Signal::INT)),
    ];
    for (keys, signal) in ways {
        let mut pty = started();

        pty.send(keys);
        if let Some(signal) = signal {
            pty.signal(signal);
        }
        pty.wait_end();

        let none: [&str; 0] = [];
        assert_eq!(left_behind(&pty), none, "{keys} {signal:?}\n{}", pty.text());
        let told = pty.text().contains("as it was asked to");
        assert_eq!(told, keys == "p", "{}", pty.text());
    }
}

#[test]
fn a_terminal_that_is_closed_ends_the_program() {
    assert_eq!(started().hang_up().code(), Some(0));
}

#[test]
fn a_terminal_that_reads_nothing_does_not_hold_the_program_up() {
    let mut pty = started();

    pty.send("f");
    pty.wait_for_text("flood");
    pty.signal(Signal::TERM);

    assert_eq!(pty.wait_end_unread().code(), Some(0));
}

#[test]
fn without_a_shell_nothing_is_suspended() {
    let mut pty = started();

    pty.send("\x1a");
    pty.wait_for_text("no process would continue");
    pty.send("x");

    pty.wait_for_text("Char('x')");
}

#[test]
fn a_shell_gets_its_terminal_back_and_gives_it_again() {
    let mut shell = command("sh");
    shell.args(["-i"]).env("PS1", "$ ").env_remove("ENV");
    let mut pty = Pty::start(shell, 100, 24);
    pty.wait_for_text("$");
    let program = std::env::current_exe().unwrap();
    let line = format!("{} {}\r", program.display(), ARGUMENTS.join(" "));
    pty.send(line);
    wait_for_screen(&mut pty);
    let pid = pid(&pty);

    for time in 1..=2 {
        if time == 1 {
            pty.send("\x1a");
        } else {
            kill_process(pid, Signal::TSTP).unwrap();
        }
        pty.wait_for("the shell", |screen| {
            let stopped = screen.contents().matches("Stopped").count();
            !screen.alternate_screen() && stopped == time
        });
        let none: [&str; 0] = [];
        assert_eq!(left_behind(&pty), none, "{}", pty.text());
        // The shell reads the input now.
        pty.send(format!("echo ={}$((0))=\r", "4".repeat(time)));
        pty.wait_for_text(&format!("={}0=", "4".repeat(time)));
        pty.send("fg\r");
        wait_for_screen(&mut pty);
        pty.send("x");
        pty.wait_for_text("Char('x')");
    }

    pty.send("q");
    pty.wait_for("the shell", |screen| !screen.alternate_screen());
    pty.send("exit\r");
    pty.wait_end();
}

#[test]
#[ignore = "a program that the other tests start in a terminal"]
fn program() {
    hold_panics();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut signals = Signals::new().unwrap();
        let terminal = Terminal::open(true).unwrap();
        match run(terminal, &mut signals).await {
            Ok(()) | Err(TerminalError::Gone) => {}
            Err(error) => panic!("{error:?}"),
        }
    });
    // Exits here: without a terminal the test harness could not print its result.
    std::process::exit(0);
}

/// Shows the last event.
async fn run(mut terminal: Terminal, signals: &mut Signals) -> Result<(), TerminalError> {
    let mut input = terminal.input()?;
    let mut painter = Painter::new();
    let mut said = String::from("nothing yet");
    let mut happened = Vec::new();
    loop {
        if terminal.is_shown() && terminal.is_clear() {
            let mut frame = Vec::new();
            painter.paint(&screen(&terminal, &said), Theme::Terminal, &mut frame);
            terminal.send(&frame)?;
        }
        tokio::select! {
            read = input.read(&mut happened) => read?,
            told = signals.next() => match told {
                SignalEvent::Terminate | SignalEvent::HangUp | SignalEvent::Interrupt => return Ok(()),
                SignalEvent::Continued => {
                    if terminal.resume()? {
                        painter.forget();
                    }
                }
                SignalEvent::Stop => {
                    terminal.suspend()?;
                }
                SignalEvent::Resized => {}
            },
            clear = terminal.clear(), if !terminal.is_clear() => clear?,
        }
        for happening in happened.drain(..) {
            said = format!("{happening:?}");
            if let TerminalEvent::Key(key) = happening {
                match key {
                    KeyPress {
                        code: KeyCode::Char('q'),
                        ..
                    } => return Ok(()),
                    KeyPress {
                        code: KeyCode::Char('p'),
                        ..
                    } => panic!("as it was asked to"),
                    KeyPress {
                        code: KeyCode::Char('f'),
                        ..
                    } => {
                        for _ in 0..20_000 {
                            terminal.send(b"\x1b[5Hflood of words")?;
                        }
                    }
                    _ if key == KeyPress::ctrl('z') && !terminal.suspend()? => {
                        said = String::from("no process would continue");
                    }
                    _ => {}
                }
            }
        }
    }
}

fn screen(terminal: &Terminal, said: &str) -> Grid {
    let (columns, rows) = terminal.size();
    let mut grid = Grid::new(columns, rows);
    grid.put(0, 0, &format!("pid {}", std::process::id()), Tone::Text);
    let size = format!("{columns} columns, {rows} rows");
    grid.put(1, 0, &size, Tone::Faint);
    grid.put(2, 0, said, Tone::Text);
    grid.cursor = Some((3, 2));
    grid
}
