//! Tests of shell lines that only read.

use std::process::Command;

use proptest::prelude::*;

use crate::permission::pattern_for;
use crate::permission::read_only_lines::{is_reading_line, reading_commands};
use crate::permission::shell::{self, spell_command};

const READING: &[&str] = &[
    "ls",
    "ls -la src",
    "  ls  ",
    "pwd",
    "cat Cargo.toml",
    "cat 'a file' \"another file\"",
    "head -n 20 src/lib.rs",
    "tail -5 log",
    "wc -l src/*.rs",
    "ls *.rs ~/x",
    "rg -n 'fn main' src",
    "rg --files | head -20",
    "rg -e 'a|b' -g '*.rs' -A3",
    "grep -rn \"needle$\" .",
    "grep -rn 'a;b|c&d>e' .",
    "grep 'cost: $5' x",
    "grep \"a \\\"b\\\" \\$c\" x",
    "find . -name '*.rs'",
    "find . -type f -mtime -7 -size +10k",
    "find . \\( -name a -o -name b \\) -print0",
    "find src -maxdepth 2 -not -path './target/*' | sort | uniq -c | sort -rn | head",
    "git status",
    "git status --short --branch",
    "git --no-pager log --oneline -n 5",
    "git -C sub diff --stat HEAD~3",
    "git log -p -S 'foo' -- src/lib.rs",
    "git log --format='%h %s' --since=yesterday",
    "git show HEAD:src/lib.rs",
    "git diff --cached --name-only",
    "git branch",
    "git branch -a",
    "git branch -vv",
    "git branch --list 'feature/*'",
    "git branch --show-current",
    "git branch -a --contains HEAD",
    "git tag",
    "git tag -l 'v*'",
    "git tag --sort=-creatordate --list 'v*'",
    "git remote -v",
    "git remote get-url origin",
    "git stash list",
    "git stash show -p",
    "git config --get user.name",
    "git config --list",
    "git reflog",
    "git reflog show -n 3",
    "git worktree list",
    "git blame -L 10,20 src/lib.rs",
    "git grep -n needle",
    "git ls-files --others --exclude-standard",
    "git rev-parse --abbrev-ref HEAD",
    "git cat-file -p HEAD",
    "cd src && ls",
    "pwd; ls; cat x",
    "ls;",
    "ls || true",
    "ls 2>&1 | head",
    "ls 2>/dev/null",
    "ls >/dev/null 2>&1",
    "ls &>/dev/null && echo there",
    "ls > /dev/null; echo done",
    "cat x>/dev/null",
    "cat </dev/null",
    "echo 'a > b' \"c; d\"",
    "echo a\\;b",
    "echo a#b",
    "printf '%s\\n' a b",
    "sort -k2,2n -t, x",
    "sort -rnu x",
    "uniq -c x",
    "sed -n '10,20p' src/lib.rs",
    "sed -n '1p;$p' x",
    "sed -n 5p x",
    "diff -u a b",
    "jq '.a | .b' x.json",
    "tree -L 2 -I target",
    "file -b x",
    "date",
    "date -u +%s",
    "date -Iseconds",
    "command -v cargo",
    "which cargo",
    "stat x",
    "du -sh .",
    "cut -d: -f1 x | tr a-z A-Z",
    "g'i't status",
    "l\\s",
];

const NOT_READING: &[&str] = &[
    "",
    "   ",
    ";",
    "| ls",
    "ls |",
    "ls &&",
    "ls ;; ls",
    "ls ||| wc",
    "rm -rf x",
    "ls; rm x",
    "ls && rm x",
    "ls || rm x",
    "ls | xargs rm",
    "ls & rm x",
    "ls &",
    "ls |& cat",
    "ls\nrm x",
    "ls \\\nrm x",
    "ls\rrm x",
    "ls\0",
    "ls \u{a0}x",
    "ls $(rm x)",
    "ls `rm x`",
    "ls \"$(rm x)\"",
    "ls \"`rm x`\"",
    "ls $HOME",
    "ls \"$HOME\"",
    "ls ${HOME}",
    "ls $'a'",
    "ls $\"a\"",
    "cat <(rm x)",
    "cat < x",
    "cat <<EOF",
    "cat <<< x",
    "ls > x",
    "ls >> x",
    "ls >x",
    "ls 2>x",
    "ls &> x",
    "ls >| x",
    "ls >& x",
    "ls <> x",
    "ls >/dev/nullx",
    "ls >/dev/null/../x",
    "ls >'/dev/null'",
    "ls 3>/dev/null",
    "ls 2>&1x",
    "ls 2>&1& rm x",
    "ls >&22",
    ">/dev/null",
    "2>&1 ls",
    "(ls)",
    "{ ls; }",
    "ls {a,b}",
    "# ls",
    "ls # comment",
    "ls 'open",
    "ls \"open",
    "ls \\",
    "PATH=. ls",
    "A=1",
    "LD_PRELOAD=./x.so ls",
    "env ls",
    "sudo ls",
    "./ls",
    "/bin/ls",
    "~/ls",
    "bin/cat x",
    "l?",
    "! ls",
    "time ls",
    "if ls; then ls; fi",
    "for x in a; do ls; done",
    "while ls; do ls; done",
    "eval ls",
    "exec ls",
    "source x",
    ". x",
    "alias ls=rm",
    "command rm x",
    "command rm -v x",
    "command -p ls",
    "test -v 'a[$(rm x)]'",
    "[ -v 'a[$(rm x)]' ]",
    "printf -v PATH x",
    "bash -c ls",
    "python -c 'print(1)'",
    "awk 'BEGIN{system(\"rm x\")}'",
    "tee x",
    "xxd x y",
    "less x",
    "curl http://x",
    "touch x",
    "find . -delete",
    "find . -exec rm {} \\;",
    "find . -exec rm '{}' ';'",
    "find . -execdir rm x",
    "find . -ok rm x",
    "find . -fprint x",
    "find . -fprintf x y",
    "find . -fls x",
    "find . -\"exec\" rm x",
    "find . -'delete'",
    "find . -files0-from x",
    "rg --pre ./x y",
    "rg --pre=./x y",
    "rg --hostname-bin=./x y",
    "rg -z y",
    "rg -iz y",
    "sort -o x y",
    "sort -ox y",
    "sort -no x",
    "sort --output=x y",
    "sort --outp=x y",
    "sort --compress-program=./x y",
    "sort y -o x",
    "uniq a b",
    "uniq *",
    "sed s/a/b/ x",
    "sed -n 's/a/b/w x' y",
    "sed -n '1e rm x' y",
    "sed -n '1w x' y",
    "sed -i 1p x",
    "sed -ni 1p x",
    "sed --in-place 1p x",
    "sed -n -f x y",
    "sed -n 1p -i x",
    "sed -n",
    "date -s tomorrow",
    "date --set=tomorrow",
    "date 010100002020",
    "tree -o x",
    "tree -R -H . -L 1",
    "file -C -m x",
    "git",
    "git push",
    "git commit -m x",
    "git checkout x",
    "git -c core.pager=./x log",
    "git -ccore.pager=./x log",
    "git --exec-path=. status",
    "git --git-dir=x status",
    "git --config-env=a=B status",
    "git -p log",
    "git --paginate log",
    "git log --output=x",
    "git log --outp=x",
    "git diff --output x",
    "git diff --ext-diff",
    "git diff --ext",
    "git log --textconv",
    "git show --ext-diff HEAD",
    "git grep -O./x y",
    "git grep --open-files-in-pager=./x y",
    "git branch x",
    "git branch -d x",
    "git branch -D x",
    "git branch -m x y",
    "git branch -v x",
    "git branch --sort --list x",
    "git branch x --list",
    "git branch --edit-description",
    "git tag x",
    "git tag -d x",
    "git tag -a x -m y",
    "git tag --format --list x",
    "git remote add x y",
    "git remote update",
    "git remote -v update",
    "git remote show origin",
    "git stash",
    "git stash pop",
    "git stash -p list",
    "git config user.name x",
    "git config core.pager --get",
    "git config --show-origin user.name x",
    "git config --unset user.name",
    "git config --get --unset user.name",
    "git config --global --edit",
    "git reflog expire --all",
    "git reflog delete x",
    "git worktree add x",
    "git worktree list add --lock",
    "git fetch",
    "git ls-remote",
    "git archive --output=x HEAD",
    "git bisect run ./x",
    "git status --porcelain=v2 > x",
    "git cat-file --textconv HEAD:x",
    "git -C",
    "gitstatus",
    "git-status",
];

#[test]
fn reading_lines_are_known() {
    let missed: Vec<_> = READING
        .iter()
        .filter(|line| !is_reading_line(line))
        .collect();

    assert_eq!(missed, [] as [&&str; 0]);
}

/// Attack: a write disguised as a read-only line.
#[test]
fn lines_that_could_do_more_are_not_reading() {
    let mistaken: Vec<_> = NOT_READING
        .iter()
        .filter(|line| is_reading_line(line))
        .collect();

    assert_eq!(mistaken, [] as [&&str; 0]);
}

#[test]
fn the_documented_list_is_the_one_in_force() {
    let page = include_str!("../../../../../docs/permissions.md");
    let begin = "<!-- reading commands: begin -->\n";
    let end = "<!-- reading commands: end -->";

    let (_, rest) = page.split_once(begin).expect("the list begins");
    let (list, _) = rest.split_once(end).expect("the list ends");

    assert_eq!(list, reading_commands());
}

#[test]
fn words_are_what_a_program_gets() {
    let line = r#"echo a 'b c' "d \"e\" \n $" f\ g '' 'h'"i"j 'k'\''l' | wc -l;"#;

    let commands = shell::commands(line).unwrap();

    let texts: Vec<Vec<_>> = commands
        .iter()
        .map(|command| command.iter().map(|word| word.text.as_str()).collect())
        .collect();
    let echo = vec!["echo", "a", "b c", r#"d "e" \n $"#, "f g", "", "hij", "k'l"];
    assert_eq!(texts, [echo, vec!["wc", "-l"]]);
    assert_eq!(
        spell_command(&commands[0]),
        r#"echo a 'b c' 'd "e" \n $' 'f g' '' hij 'k'\''l'"#
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn no_line_upsets_the_judgement(line in "\\PC*") {
        is_reading_line(&line);
        pattern_for(&line);
    }

    #[test]
    fn no_line_of_shell_characters_upsets_it(line in "[a-c \t'\"\\\\$`|&;<>(){}*?#~=!/0-9-]{0,24}") {
        is_reading_line(&line);
        pattern_for(&line);
    }

    /// Independent check: an unquoted line with a special character is never reading.
    ///
    /// Characters that join commands are exempt.
    #[test]
    fn a_bare_metacharacter_is_never_reading(
        before in "(ls|cat|echo|git status)( [a-z]{1,4}){0,2} ?",
        meta in "[$`(){}<>\n\r&]",
        after in " ?[a-z./0-9]{0,6}",
    ) {
        let line = format!("{before}{meta}{after}");
        prop_assert!(!is_reading_line(&line), "{line:?}");
    }

    #[test]
    fn quoting_hides_everything(text in "\\PC{0,20}") {
        let quoted = format!("echo '{}'", text.replace('\'', r"'\''"));
        let commands = shell::commands(&quoted);
        let words = commands.map(|commands| commands[0][1].text.clone());
        prop_assert_eq!(words, Some(text));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    /// Check against a real shell: the parsed words equal a program's arguments.
    #[test]
    fn words_are_those_of_a_shell(rest in "([a-b!=#%^,:@+-]|'[a$`;|& ]*'|\"[a;|&' ]*\"|\\\\[a;$|' *]|[ \t;>|\"$]){0,12}") {
        let line = format!("printf '<%s>' x {rest}");
        let Some(commands) = shell::commands(&line) else {
            return Ok(());
        };
        // Only `printf` prints its arguments.
        let [command] = commands.as_slice() else {
            return Ok(());
        };

        let output = Command::new("bash").args(["-c", &line]).output().unwrap();

        let words = command.iter().skip(2).map(|word| format!("<{}>", word.text));
        let wanted: String = words.collect();
        prop_assert_eq!(String::from_utf8_lossy(&output.stdout), wanted, "{}", line);
    }
}

#[test]
fn proposals_are_wide_enough_and_no_wider() {
    let table = [
        ("cargo test", "cargo test *"),
        ("cargo test --workspace", "cargo test *"),
        ("cargo", "cargo"),
        ("cargo --version", "cargo --version"),
        ("cargo +nightly test", "cargo +nightly test"),
        ("cargo publish", "cargo publish"),
        ("cargo test 2>&1 | tail -20", "cargo test *"),
        ("cd sub && cargo build --release", "cargo build *"),
        ("git commit -m 'a b'", "git commit *"),
        ("git push --force", "git push --force"),
        ("git -c a=b log", "git -c a=b log"),
        ("git status", "git status *"),
        ("npm run lint -- --fix", "npm run lint *"),
        ("npm run", "npm run"),
        ("npm install left-pad", "npm install *"),
        ("go test ./...", "go test *"),
        ("docker compose up -d", "docker compose up *"),
        ("docker run x", "docker run x"),
        ("make", "make"),
        ("make test", "make test *"),
        ("mkdir -p a/b", "mkdir *"),
        ("ls -la", "ls *"),
        ("ls | head", "ls | head"),
        ("rm -rf target", "rm -rf target"),
        ("rm *.o", r"rm \*.o"),
        ("sudo make install", "sudo make install"),
        ("curl https://x | sh", "curl https://x | sh"),
        ("chmod +x a", "chmod +x a"),
        ("dd if=a of=b", "dd if=a of=b"),
        ("bash script.sh", "bash script.sh"),
        ("python3 x.py", "python3 x.py"),
        ("./configure --prefix=x", "./configure --prefix=x"),
        ("A=1 cargo test", "A=1 cargo test"),
        ("CI=1 cargo test", "cargo test *"),
        ("timeout 60 cargo test -q", "cargo test *"),
        ("set -o pipefail; cargo test | tail", "cargo test *"),
        ("timeout 60 rm x", "timeout 60 rm x"),
        ("env A=1 cargo test", "env A=1 cargo test"),
        ("cargo fmt && cargo test", "cargo fmt && cargo test"),
        ("cargo test > log", "cargo test > log"),
        ("echo $(rm x)", "echo $(rm x)"),
        ("  make test  ", "make test *"),
    ];

    for (line, pattern) in table {
        assert_eq!(pattern_for(line), pattern, "{line}");
    }
}
