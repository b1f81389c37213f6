//! Subcommands and options of `git` that only read.

use ikigai_core::word_list::WordList;

use super::programs::{Operands, Options, Program, only};

/// Options allowed between `git` and its subcommand.
///
/// Not `-c`, because a setting can name a program that git then runs.
pub(super) const BEFORE: WordList = WordList("--no-pager --no-optional-locks");

/// Options that filter branches and tags, so that operands create none.
const LISTING: WordList =
    WordList("--contains --list --merged --no-contains --no-merged --points-at");

/// The same for tags, of which `-l` lists too.
const LISTING_TAGS: WordList =
    WordList("-l --contains --list --merged --no-contains --no-merged --points-at");

/// Subcommands, in alphabetical order.
pub(super) const SUBCOMMANDS: &[Program] = &[
    git("blame", "bcCefklMnpstw", "LS", BLAME),
    git("branch", "arv", "", BRANCH).with(Operands::With(LISTING)),
    git("cat-file", "epst", "", NONE),
    git("config", "lz", "", CONFIG).with(Operands::With(WordList("--get --get-all --get-regexp"))),
    git(
        "count-objects",
        "vH",
        "",
        WordList("--verbose --human-readable"),
    ),
    git("describe", "", "", DESCRIBE),
    git("diff", HISTORY_FLAGS, HISTORY_VALUED, HISTORY),
    git("for-each-ref", "", "", FOR_EACH_REF),
    git("grep", "acEFGhHiIlLnopPqvwWz", "ABCefm", GREP),
    git("log", HISTORY_FLAGS, HISTORY_VALUED, HISTORY),
    git("ls-files", "cdikmostuvz", "xX", LS_FILES),
    git("ls-tree", "dlrtz", "", LS_TREE),
    git(
        "merge-base",
        "a",
        "",
        WordList("--all --is-ancestor --octopus"),
    ),
    git("reflog", HISTORY_FLAGS, HISTORY_VALUED, HISTORY)
        .with(Operands::NoneOrFirst(WordList("show"))),
    git("remote", "v", "", WordList("--verbose")).with(Operands::NoneOrFirst(WordList("get-url"))),
    git("rev-list", HISTORY_FLAGS, HISTORY_VALUED, REV_LIST),
    git("rev-parse", "q", "", REV_PARSE),
    git("shortlog", "censw", "", SHORTLOG),
    git("show", HISTORY_FLAGS, HISTORY_VALUED, HISTORY),
    git("show-ref", "dq", "", SHOW_REF),
    git("stash", HISTORY_FLAGS, HISTORY_VALUED, HISTORY)
        .with(Operands::First(WordList("list show"))),
    git("status", "bsuvz", "", STATUS),
    git("tag", "ln", "", TAG).with(Operands::With(LISTING_TAGS)),
    git("worktree", "vz", "", WordList("--porcelain --verbose"))
        .with(Operands::First(WordList("list"))),
];

const fn git(
    name: &'static str,
    flags: &'static str,
    valued: &'static str,
    long: WordList,
) -> Program {
    let options = Options::Only {
        flags,
        valued,
        long,
    };
    only(name, options, Operands::Any)
}

const NONE: WordList = WordList("");

const HISTORY_FLAGS: &str = "0123456789abcEFghilmpPqrRstuvwWz";
const HISTORY_VALUED: &str = "BCDGLMnOSU";

/// Options that `diff`, `log`, `show` and others share. Not `--output`, `--ext-diff`, `--textconv`.
const HISTORY: WordList = WordList(
    "--abbrev --abbrev-commit --after --all --all-match --ancestry-path --author --before
     --boundary --branches --cached --cc --check --cherry-pick --color --color-words --committer
     --date --date-order --decorate --diff-algorithm --diff-filter --dirstat --exit-code
     --find-copies --find-renames --first-parent --follow --format --full-history --full-index
     --function-context --graph --grep --histogram --ignore-all-space --ignore-blank-lines
     --ignore-space-at-eol --ignore-space-change --invert-grep --left-right --max-count
     --merge-base --merges --minimal --name-only --name-status --no-abbrev-commit --no-color
     --no-decorate --no-ext-diff --no-index --no-merges --no-notes --no-patch --no-prefix
     --no-renames --no-textconv --no-walk --numstat --oneline --patch --patience --pickaxe-all
     --pickaxe-regex --pretty --quiet --raw --regexp-ignore-case --relative --remotes --reverse
     --root --shortstat --simplify-by-decoration --since --skip --source --staged --stat --summary
     --tags --text --topo-order --unified --until --walk-reflogs --word-diff --word-diff-regex",
);

const BLAME: WordList = WordList(
    "--date --line-porcelain --porcelain --reverse --root --show-email --show-name --show-number
     --since",
);

const BRANCH: WordList = WordList(
    "--all --color --contains --format --list --merged --no-color --no-contains --no-merged
     --points-at --remotes --show-current --sort --verbose",
);

const CONFIG: WordList = WordList(
    "--get --get-all --get-regexp --global --list --local --name-only --null --show-origin
     --show-scope --system",
);

const DESCRIBE: WordList = WordList(
    "--abbrev --all --always --contains --dirty --exact-match --first-parent --long --match --tags",
);

const FOR_EACH_REF: WordList =
    WordList("--contains --count --format --merged --no-contains --no-merged --points-at --sort");

const GREP: WordList = WordList(
    "--after-context --all-match --and --before-context --break --cached --color --column --context
     --count --extended-regexp --files-with-matches --files-without-match --fixed-strings
     --full-name --function-context --heading --ignore-case --invert-match --line-number
     --max-count --max-depth --name-only --no-color --no-index --not --only-matching --or
     --perl-regexp --quiet --show-function --untracked --word-regexp",
);

const LS_FILES: WordList = WordList(
    "--abbrev --cached --deleted --error-unmatch --exclude --exclude-standard --full-name --ignored
     --killed --modified --others --stage --unmerged",
);

const LS_TREE: WordList = WordList("--abbrev --full-name --full-tree --long --name-only");

const REV_LIST: WordList = WordList(
    "--abbrev-commit --after --all --author --before --branches --count --first-parent --format
     --grep --left-right --max-count --merges --no-merges --objects --oneline --parents --pretty
     --reverse --since --skip --tags --topo-order --until",
);

const REV_PARSE: WordList = WordList(
    "--abbrev-ref --absolute-git-dir --all --branches --git-common-dir --git-dir
     --is-bare-repository --is-inside-work-tree --quiet --short --show-cdup --show-prefix
     --show-toplevel --symbolic-full-name --tags --verify",
);

const SHORTLOG: WordList = WordList("--all --email --numbered --since --summary");

const SHOW_REF: WordList = WordList("--dereference --heads --quiet --tags --verify");

const STATUS: WordList = WordList(
    "--ahead-behind --branch --ignored --long --no-renames --porcelain --short --show-stash
     --untracked-files --verbose",
);

const TAG: WordList = WordList(
    "--color --column --contains --format --ignore-case --list --merged --no-contains --no-merged
     --points-at --sort",
);
