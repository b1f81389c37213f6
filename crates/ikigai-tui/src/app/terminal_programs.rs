//! Command lines that need the terminal: editors, pagers and other full-screen programs.

use ikigai_core::word_list::WordList;

/// Programs that draw on the whole screen or read keys.
const FULL_SCREEN: WordList = WordList(
    "alsamixer atop bpython btop byobu cfdisk cmus dialog elinks emacs fzf gdb gitui glances helix
     htop hx iftop info iotop ipython irssi joe kak lazydocker lazygit less lf links lldb lynx man
     mc mcedit micro more mosh most mutt nano ncdu ne neomutt nethogs nmtui nnn nvim nvtop pico
     ranger screen sk su tig tmux top vi view vifm vim vimdiff vimtutor vipw visudo w3m watch
     weechat whiptail yazi zellij",
);

/// Programs that talk with a person if they get no arguments.
const ALONE: WordList = WordList(
    "bash bc dash deno erl fish ftp ghci iex irb julia ksh lua mongosh mysql node ocaml passwd psql
     python python3 R redis-cli scala sh sqlite3 telnet zsh",
);

/// Command prefixes that do not change the need for a terminal.
const WRAPPERS: &[&str] = &["command", "doas", "env", "exec", "nice", "sudo", "time"];

/// Returns true if a shell line runs a program that needs the terminal.
///
/// A program with its output in a pipe or a file does not.
pub(super) fn wants_terminal(line: &str) -> bool {
    let mut parts = line.split_inclusive(['|', ';', '&', '\n']).peekable();
    while let Some(part) = parts.next() {
        let is_piped = part.ends_with('|') && parts.peek().is_none_or(|next| *next != "|");
        let part = part.trim_end_matches(['|', ';', '&', '\n']);
        if !is_piped && !part.contains('>') && program_wants_terminal(part) {
            return true;
        }
    }
    false
}

fn program_wants_terminal(part: &str) -> bool {
    let is_assignment = |word: &str| {
        let name = word.split_once('=').map_or("", |(name, _)| name);
        !name.is_empty()
            && name
                .bytes()
                .all(|byte| byte == b'_' || byte.is_ascii_alphanumeric())
    };
    let mut words = part
        .split_whitespace()
        .skip_while(|word| is_assignment(word) || WRAPPERS.contains(word));
    let Some(program) = words.next() else {
        return false;
    };
    let name = program.rsplit('/').next().unwrap_or(program);
    let arguments: Vec<_> = words.collect();
    let has = |wanted: &[&str]| arguments.iter().any(|argument| wanted.contains(argument));
    match name {
        "emacs" if has(&["--batch", "-batch"]) => false,
        "top" if has(&["-b"]) => false,
        "git" => match arguments.first().copied() {
            Some("commit") => !arguments.iter().any(|argument| is_commit_message(argument)),
            Some("rebase") => has(&["-i", "--interactive"]),
            Some("add" | "checkout" | "reset" | "stash" | "restore") => {
                has(&["-p", "--patch", "-i", "--interactive"])
            }
            Some("mergetool") => true,
            _ => false,
        },
        "crontab" => has(&["-e"]),
        // With a command it prints like any other program.
        "ssh" => {
            arguments
                .iter()
                .filter(|word| !word.starts_with('-'))
                .count()
                < 2
        }
        name if FULL_SCREEN.contains(name) => true,
        name => ALONE.contains(name) && arguments.is_empty(),
    }
}

/// Returns true if an argument of `git commit` makes an editor unnecessary.
fn is_commit_message(argument: &str) -> bool {
    let long = [
        "--message",
        "--file",
        "--no-edit",
        "--reuse-message",
        "--fixup",
        "--dry-run",
        "--help",
    ];
    let is_long = long.iter().any(|option| argument.starts_with(option));
    let short = argument
        .strip_prefix('-')
        .filter(|rest| !rest.starts_with('-'));
    is_long || short.is_some_and(|letters| letters.contains(['m', 'F', 'C', 'h']))
}

#[cfg(test)]
mod tests {
    use super::wants_terminal;

    #[test]
    fn editors_and_pagers_want_the_terminal_and_what_prints_does_not() {
        let wants = [
            "vi",
            "vi notes.md",
            "/usr/bin/vim -R x",
            "EDITOR=x nano a",
            "sudo htop",
            "man ls",
            "git log | less",
            "cd /tmp && vi x",
            "ls; top",
            "git commit",
            "git commit -a",
            "git add -p src",
            "git rebase -i HEAD~2",
            "python3",
            "ssh host",
            "false || vi x",
        ];
        let prints = [
            "ls",
            "echo vi",
            "grep vim x",
            "git commit -m x",
            "git commit -am \"vi\"",
            "git log",
            "man ls | cat",
            "python3 x.py",
            "top -b -n 1",
            "ssh host ls",
            "cat less",
            "sleep 60",
            "less x > y",
            "cargo test",
            "",
        ];
        for line in wants {
            assert!(wants_terminal(line), "{line}");
        }
        for line in prints {
            assert!(!wants_terminal(line), "{line}");
        }
    }
}
