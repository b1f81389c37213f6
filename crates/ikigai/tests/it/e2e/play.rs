//! Plays one session, step by step.

use std::process::Command;
use std::time::{Duration, Instant};

use ikigai_testkit::mock::{Mock, MockAnswer};
use serde_json::{Value, json};

use super::judge;
use super::program::Program;
use crate::support::TestUser;

/// Timeout of a wait for a text on the screen.
const PATIENCE: Duration = Duration::from_secs(30);

/// Interval between two reads of the screen.
const BETWEEN_LOOKS_MS: u64 = 20;

/// A session that is played.
pub(super) struct Session {
    user: TestUser,
    mock: Mock,
    environment: Vec<(String, String)>,
    program: Option<Program>,
    pub(super) screen: Vec<String>,
    pub(super) cache: Value,
}

/// Plays a test.
pub(super) fn play(test: &Value) -> Result<(), String> {
    for key in test.as_object().into_iter().flatten().map(|(key, _)| key) {
        let known = [
            "name",
            "env",
            "steps",
            "assert",
            "assert_mock",
            "assert_token_cache",
        ];
        if !known.contains(&key.as_str()) {
            return Err(format!("there is no `{key}` in a test"));
        }
    }
    let mut session = Session::new(&test["env"])?;
    session.begin()?;
    for (number, step) in list(&test["steps"]).iter().enumerate() {
        session
            .step(step)
            .map_err(|reason| format!("step {number} {step}: {reason}\n{}", session.shown()))?;
    }
    judge::judge(test, &session, &session.mock)
        .map_err(|reason| format!("{reason}\n{}", session.shown()))?;
    session.program.take().map_or(Ok(()), Program::end)
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

impl Session {
    fn new(environment: &Value) -> Result<Self, String> {
        let user = TestUser::new();
        let mock = Mock::start();
        let url = mock.url();
        let directory = user.home().join(".config/ikigai");
        std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        // A server of the Chat dialect has no environment variable.
        // Automatic summaries would consume answers meant for other requests.
        let config = format!("compact_at = 0\n[providers.compatible]\nbase_url = \"{url}\"\n");
        std::fs::write(directory.join("config.toml"), config).map_err(|e| e.to_string())?;
        let mut all: Vec<(String, String)> = [
            ("OPENAI_API_KEY", "sk-openai-of-a-test"),
            ("ANTHROPIC_API_KEY", "sk-anthropic-of-a-test"),
            ("GOOGLE_API_KEY", "google-key-of-a-test"),
            ("OPENAI_BASE_URL", &url),
            ("ANTHROPIC_BASE_URL", &url),
            ("GOOGLE_BASE_URL", &url),
            ("LANG", "C.UTF-8"),
            ("PATH", &std::env::var("PATH").unwrap_or_default()),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec();
        let runtime = user.home().join("run").to_string_lossy().into_owned();
        all.push(("IKIGAI_RUNTIME_DIR".to_owned(), runtime));
        for (name, value) in environment.as_object().into_iter().flatten() {
            let value = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            all.push((name.clone(), value.replace("{mock}", &url)));
        }
        Ok(Self {
            user,
            mock,
            environment: all,
            program: None,
            screen: Vec::new(),
            cache: Value::Null,
        })
    }

    fn command(&self) -> Command {
        let mut command = self.user.command(&["--headless"]);
        command.envs(self.environment.iter().cloned());
        command
    }

    fn begin(&mut self) -> Result<(), String> {
        self.program = Some(Program::start(self.command())?);
        Ok(())
    }

    fn program(&self) -> Result<&Program, String> {
        self.program
            .as_ref()
            .ok_or_else(|| "the program does not run".to_owned())
    }

    fn step(&mut self, step: &Value) -> Result<(), String> {
        let step = step.as_object().filter(|step| step.len() == 1);
        let (name, value) = step
            .and_then(|step| step.iter().next())
            .ok_or("a step is an object with one key")?;
        match name.as_str() {
            "send_keys" => {
                let keys = value.as_str().ok_or("keys are a text")?;
                self.program()?
                    .ask(&json!({"type": "send_keys", "keys": keys}))?;
            }
            "wait" => {
                let seconds = value.as_f64().ok_or("a time is a number")?;
                let until = Instant::now() + Duration::from_secs_f64(seconds.clamp(0.0, 60.0));
                while Instant::now() < until {
                    self.wait_idle(BETWEEN_LOOKS_MS)?;
                    std::thread::yield_now();
                }
            }
            "wait_idle" => {
                let most = value.as_u64().ok_or("a time is a number")?;
                if !self.wait_idle(most)? {
                    self.read_framebuffer()?;
                    return Err("it is not idle in time".to_owned());
                }
            }
            "wait_screen" => {
                let text = value.as_str().ok_or("a text is waited for")?;
                self.wait_screen(text)?;
            }
            "mock_expect" => {
                let says = list(&value["responses"]).iter().map(MockAnswer::read);
                self.mock.expect(says.collect::<Result<Vec<_>, _>>()?);
            }
            "read_framebuffer" => self.read_framebuffer()?,
            "read_token_cache" => {
                self.cache = self.program()?.ask(&json!({"type": "read_token_cache"}))?;
            }
            "restart" => {
                if let Some(program) = self.program.take() {
                    program.end()?;
                }
                self.begin()?;
            }
            "kill" => {
                if let Some(program) = self.program.take() {
                    program.kill();
                }
            }
            other => return Err(format!("there is no step `{other}`")),
        }
        Ok(())
    }

    fn wait_idle(&self, most: u64) -> Result<bool, String> {
        let request = json!({"type": "wait_idle", "timeout_ms": most});
        Ok(self.program()?.ask(&request)?["type"] == "idle")
    }

    /// Reads the screen repeatedly; between two reads the program itself waits until it is idle.
    fn wait_screen(&mut self, text: &str) -> Result<(), String> {
        let until = Instant::now() + PATIENCE;
        loop {
            self.read_framebuffer()?;
            if self.shown().contains(text) {
                return Ok(());
            }
            if Instant::now() > until {
                return Err(format!("`{text}` does not come"));
            }
            self.wait_idle(BETWEEN_LOOKS_MS)?;
        }
    }

    fn read_framebuffer(&mut self) -> Result<(), String> {
        let seen = self.program()?.ask(&json!({"type": "read_framebuffer"}))?;
        let lines = list(&seen["lines"]);
        if Some(lines.len() as u64) != seen["rows"].as_u64() {
            return Err("not every row is there".to_owned());
        }
        let text = |line: &Value| -> String {
            let spans = list(&line["spans"]).iter();
            spans.filter_map(|span| span["text"].as_str()).collect()
        };
        self.screen = lines.iter().map(text).collect();
        Ok(())
    }

    /// Returns the last screen that was read.
    pub(super) fn shown(&self) -> String {
        self.screen.join("\n")
    }
}
