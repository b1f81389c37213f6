//! The program is left in every way, at random moments.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use ikigai_testkit::{Dice, tell};
use rustix::process::Signal;

use super::{HANGS, Ledger, ROUNDS_PER_STORE, pause, read_beside, rounds, send, wait_end};
use crate::support::{PROGRAM, TestUser};

const LATEST_MILLISECONDS: u64 = 300;

const WAYS: u64 = 8;

/// User who leaves the program repeatedly.
struct Person {
    user: TestUser,
    dice: Dice,
    ledger: Ledger,
    /// Texts of lines that the program took before it was left.
    typed: Vec<String>,
    longest: Duration,
}

#[test]
fn leaving_at_random_moments_ends_in_time_and_keeps_every_line() {
    let leaves = rounds(24, 300);
    let mut dice = Dice::roll();
    let mut done = 0;
    let mut lines = 0;
    let mut longest = Duration::ZERO;
    while done < leaves {
        let mut person = Person::new(dice);
        for round in 0..ROUNDS_PER_STORE.min(leaves - done) {
            // Every way in turn, so that a short run has them all.
            person.leave(done % WAYS, round);
            person.check();
            done += 1;
        }
        lines += person.typed.len();
        longest = longest.max(person.longest);
        dice = person.dice;
    }
    tell(&format!(
        "{leaves} leaves, {lines} lines, none lost; the longest took {} ms",
        longest.as_millis()
    ));
}

impl Person {
    fn new(dice: Dice) -> Self {
        let user = TestUser::new();
        let directory = user.home().join(".config/ikigai");
        fs::create_dir_all(&directory).unwrap();
        // No turn continues in the background.
        fs::write(directory.join("config.toml"), "on_hangup = \"pause\"\n").unwrap();
        Self {
            user,
            dice,
            ledger: Ledger::default(),
            typed: Vec::new(),
            longest: Duration::ZERO,
        }
    }

    /// Returns a line, and the text that finds it in the log.
    fn line(&mut self, round: u64) -> (String, String) {
        let text = format!("w{round}x{}", self.dice.below(1_000_000));
        let line = match self.dice.below(3) {
            0 => format!("/mark {text}"),
            1 => format!("hello {text}"),
            _ => format!("count slowly to 60 {text}"),
        };
        (line, text)
    }

    fn moment(&mut self) {
        pause(self.dice.below(LATEST_MILLISECONDS));
    }

    fn any_signal(&mut self) -> Signal {
        let signals = [Signal::TERM, Signal::HUP, Signal::INT];
        signals[usize::try_from(self.dice.below(3)).unwrap()]
    }

    fn leave(&mut self, way: u64, round: u64) {
        match way {
            0 | 1 => self.leave_pipe_at_its_end(round),
            2 => self.leave_pipe_by_signal(),
            3 => self.leave_run_by_signal(),
            4 => self.leave_headless(),
            5 => self.leave_terminal(&["--plain"], "you: ", round),
            6 => self.leave_terminal(&[], "demo", round),
            _ => self.leave_screen_by_signal(),
        }
    }

    /// The end of input follows the lines at once.
    fn leave_pipe_at_its_end(&mut self, round: u64) {
        let mut child = self
            .user
            .command(&["--plain"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut input = child.stdin.take().unwrap();
        for _ in 0..=self.dice.below(3) {
            let (line, text) = self.line(round);
            writeln!(input, "{line}").unwrap();
            self.typed.push(text);
        }
        drop(input);
        let (status, took) = wait_end(&mut child, "plain at the end of its input");
        self.longest = self.longest.max(took);
        assert!(status.success(), "{status}");
    }

    fn leave_pipe_by_signal(&mut self) {
        let mut child = self
            .user
            .command(&["--plain", "count slowly to 60"])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.moment();
        send(&child, Signal::TERM);
        let (_, took) = wait_end(&mut child, "plain after SIGTERM");
        self.longest = self.longest.max(took);
    }

    fn leave_run_by_signal(&mut self) {
        let signal = self.any_signal();
        let mut child = self
            .user
            .command(&["run", "--json", "count slowly to 60"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let printed = read_beside(child.stdout.take().unwrap());
        self.moment();
        send(&child, signal);
        let (_, took) = wait_end(&mut child, "run after a signal");
        self.longest = self.longest.max(took);
        self.ledger.add(&printed.join().unwrap());
    }

    fn leave_headless(&mut self) {
        let signal = self.any_signal();
        let mut child = self
            .user
            .command(&["--headless", "count slowly to 60"])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        self.moment();
        send(&child, signal);
        let (_, took) = wait_end(&mut child, "headless after a signal");
        self.longest = self.longest.max(took);
    }

    /// Enter and Ctrl-D come in one burst, or a moment apart.
    fn leave_terminal(&mut self, arguments: &[&str], ready: &str, round: u64) {
        let mut pty = self.user.in_terminal(PROGRAM, arguments, 100, 30);
        pty.wait_for_text(ready);
        let (line, text) = self.line(round);
        let enter = if arguments.is_empty() { "\r" } else { "\n" };
        if self.dice.below(2) == 0 {
            // The second is for the question whether to leave while an agent works.
            pty.send(format!("{line}{enter}\x04\x04"));
        } else {
            pty.send(format!("{line}{enter}"));
            self.moment();
            pty.send("\x04\x04");
        }
        let since = Instant::now();
        pty.wait_end();
        let took = since.elapsed();
        assert!(took < HANGS, "it hangs in a terminal: {line}");
        self.longest = self.longest.max(took);
        self.typed.push(text);
        assert_eq!(pty.modes(), *pty.modes_at_start());
    }

    fn leave_screen_by_signal(&mut self) {
        let mut pty = self.user.in_terminal(PROGRAM, &[], 100, 30);
        let signal = match self.dice.below(3) {
            0 => Some(Signal::TERM),
            1 => Some(Signal::HUP),
            _ => None,
        };
        // The signal may come before anything is shown.
        self.moment();
        if self.dice.below(2) == 0 {
            pty.wait_for_text("demo");
            pty.send("count slowly to 60\r");
            self.moment();
        }
        let since = Instant::now();
        if let Some(signal) = signal {
            pty.signal(signal);
            pty.wait_end();
            assert_eq!(pty.modes(), *pty.modes_at_start());
        } else {
            pty.hang_up();
        }
        let took = since.elapsed();
        assert!(took < HANGS, "it hangs after {signal:?}");
        self.longest = self.longest.max(took);
    }

    /// Checks that every typed line is a row, queued mail, or in the draft file.
    fn check(&self) {
        self.ledger.check(&self.user);
        let texts = "SELECT content FROM messages UNION ALL SELECT data FROM messages \
                     UNION ALL SELECT text FROM mail";
        let stored = self
            .user
            .ikigai(&["sql", "--limit", "1000000", "--json", texts]);
        assert_eq!(stored.code, Some(0), "{}", stored.err);
        let mut kept = stored.out;
        let drafts = self.user.home().join(".local/state/ikigai/drafts");
        read_files(&drafts, &mut kept);
        for text in &self.typed {
            assert!(kept.contains(text), "lost: {text}");
        }
    }
}

/// Adds the texts of all files below a directory.
fn read_files(directory: &Path, texts: &mut String) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            read_files(&entry.path(), texts);
        } else if let Ok(text) = fs::read_to_string(entry.path()) {
            texts.push_str(&text);
        }
    }
}
