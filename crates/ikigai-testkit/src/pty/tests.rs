use super::*;

#[test]
fn a_program_talks_to_a_terminal() {
    let mut command = command("sh");
    command.args([
        "-c",
        "stty size; tty >/dev/tty; read line; echo got $line; stty -echo raw",
    ]);
    let mut pty = Pty::start(command, 40, 6);
    let before = pty.modes();

    pty.wait_for_text("6 40");
    pty.wait_for_text("/dev/pts/");
    pty.send("words\r");
    pty.wait_for_text("got words");
    let ended = pty.wait_end();

    assert!(ended.success());
    assert_ne!(pty.modes(), before);
    assert_eq!(pty.text().lines().nth(2), Some("words"));
    assert_eq!(pty.listen(Duration::ZERO), 0);
}

#[test]
fn a_new_size_is_told() {
    let mut command = command("sh");
    command.args([
        "-c",
        "trap 'stty size; exit' WINCH; echo ready; while :; do read line; done",
    ]);
    let mut pty = Pty::start(command, 40, 6);
    pty.wait_for_text("ready");

    pty.resize(50, 7);

    pty.send("\r");
    pty.wait_for_text("7 50");
    assert_eq!(pty.screen().size(), (cells(7), cells(50)));
}

#[test]
fn a_closed_terminal_ends_the_program() {
    // A program that reads the terminal may see its end before the signal, and exit by itself.
    // Tests that run under `nohup` would hand down that the signal is ignored.
    let mut command = command("env");
    command.args([
        "--default-signal=HUP",
        "sh",
        "-c",
        "echo ready; exec sleep 600",
    ]);
    let mut pty = Pty::start(command, 40, 6);
    pty.wait_for_text("ready");

    let ended = pty.hang_up();

    assert_eq!(ended.code(), None);
}
