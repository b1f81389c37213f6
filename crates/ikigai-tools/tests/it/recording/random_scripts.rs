//! Random shell scripts on a small tree.

use ikigai_testkit::{Dice, cases};

use super::{Workplace, there_and_back};

/// Names that scripts use: few, so that they meet, and hard to quote.
const NAMES: &[&str] = &[
    "a", "b", "d", "d/x", "d/y", "d/e/z", "e f", "n\nl", "-k", "l",
];

/// Lines of one script.
const MOST_LINES: u64 = 8;

fn quoted(name: &str) -> String {
    format!("$'./{}'", name.replace('\n', "\\n"))
}

fn command(dice: &mut Dice) -> String {
    let draw = |dice: &mut Dice| {
        let index = usize::try_from(dice.below(NAMES.len() as u64)).unwrap();
        quoted(NAMES[index])
    };
    let (one, two) = (draw(dice), draw(dice));
    let number = dice.below(1000);
    let which = dice.below(20);
    let line = match which {
        0 => format!("echo {number} > {one}"),
        1 => format!("echo {number} >> {one}"),
        2 => format!("sed -i s/1/{number}/ {one}"),
        3 | 4 => format!("mv -- {one} {two}"),
        5 => format!("rm -rf -- {one}"),
        6 => format!("mkdir -p -- {one}"),
        7 => format!("ln -- {one} {two}"),
        8 => format!("ln -s -- {two} {one}"),
        9 => format!(
            "chmod {} -- {one}",
            ["600", "755", "400", "711"][usize::try_from(number % 4).unwrap()]
        ),
        10 => format!("touch -d @{number} -- {one}"),
        11 => format!("cp -a -- {one} {two}"),
        12 => format!("rmdir -- {one}"),
        13 => format!("truncate -s {} -- {one}", number % 9),
        14 => format!("tar cf t.tar -- {one} && rm -rf -- {one} && tar xf t.tar"),
        15 => format!("mkfifo -- {one}"),
        16 => format!("cp -- {one} {two} && chmod +x -- {two}"),
        17 => format!("touch -h -d @{number} -- {one}"),
        18 => format!("mv --exchange -- {one} {two}"),
        _ => format!("exec 3<> {one}; echo {number} >&3; exec 3>&-"),
    };
    if [0, 1, 2, 11, 16].contains(&which) {
        // Opening a pipe waits for its other end.
        return format!("[ -z \"$(find . -type p)\" ] && {line}");
    }
    line
}

const START: &str = "mkdir -p d/e; echo 11 > a; echo 12 > d/x; echo 13 > d/e/z; ln a b; ln -s d/x l
chmod 640 d/x; touch -d @1000000 a d/x d/e d; touch -h -d @2000000 l";

/// Any script is undone exactly and redone exactly: contents, kinds, modes, links and times.
#[tokio::test]
async fn random_scripts_are_undone_and_redone_exactly() {
    let mut dice = Dice::roll();
    for _ in 0..cases(100, 2000) {
        let mut place = Workplace::new();
        place.prepare(START).await;
        let lines = 1 + dice.below(MOST_LINES);
        let script: Vec<_> = (0..lines)
            .map(|_| format!("{{ {}; }} 2>/dev/null </dev/null", command(&mut dice)))
            .collect();
        let recorded = there_and_back(&mut place, &script.join("\n")).await;
        assert_eq!(recorded.missed, [], "{script:#?}");
    }
}
