//! Slow key commands: the screen stays responsive, and Esc ends the wait.

use std::fs;

use crate::support::{PROGRAM, TestUser};

#[test]
fn a_slow_key_command_blocks_neither_the_screen_nor_leaving() {
    let user = TestUser::new();
    let directory = user.home().join(".config/ikigai");
    fs::create_dir_all(&directory).unwrap();
    let config = "model = \"mine:small\"\n\
         [providers.mine]\n\
         base_url = \"http://127.0.0.1:9\"\n\
         key_command = \"touch asked; sleep 600; echo key\"\n";
    fs::write(directory.join("config.toml"), config).unwrap();
    let asked = user.home().join("project/asked");
    let mut pty = user.in_terminal(PROGRAM, &[], 100, 30);
    pty.wait_for("the screen", |screen| {
        screen.alternate_screen() && screen.contents().contains('❯')
    });
    let at_start = asked.exists();

    pty.send("hello\r");
    pty.wait_for("the command", |_| asked.exists());
    pty.send("typed meanwhile");
    pty.wait_for_text("typed meanwhile");
    pty.send("\x1b");
    pty.wait_for_text("interrupted");
    pty.send("\x15\x04\x04");
    let ended = pty.wait_end();

    assert!(!at_start, "the provider was not used yet");
    assert!(ended.success(), "{ended}");
    assert_eq!(pty.modes(), *pty.modes_at_start());
}
