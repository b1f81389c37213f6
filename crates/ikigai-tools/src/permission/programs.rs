//! Programs and options that only read.

use ikigai_core::word_list::WordList;

/// Program that only reads if called with these options and operands.
#[derive(Clone, Copy)]
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) options: Options,
    pub(super) operands: Operands,
}

/// Options that a call may have.
///
/// A word that begins with a dash counts as an option anywhere, so that no option is overlooked.
#[derive(Clone, Copy)]
pub(super) enum Options {
    /// Any, because no option writes or runs anything.
    Any,
    /// Only these, so that unknown options and abbreviations are refused.
    Only {
        /// Letters without a value, which can be combined.
        flags: &'static str,
        /// Letters with a value: the rest of the word, or the next word.
        valued: &'static str,
        /// Long names, or whole words with one dash; a value may follow after `=`.
        long: WordList,
    },
}

/// Words other than options that a call may have.
#[derive(Clone, Copy)]
pub(super) enum Operands {
    Any,
    /// At most this many.
    Most(usize),
    /// Any if one of these options comes first, else none. Only options that cannot take the next
    /// word as their value may precede it.
    With(WordList),
    /// The first of all words must be one of these.
    First(WordList),
    /// None, or the first of all words is one of these.
    NoneOrFirst(WordList),
    /// Each has this prefix.
    Beginning(&'static str),
    /// The first is a `sed` program that only prints lines by their numbers.
    LineNumbers,
}

/// Only these options: letters without a value, letters with one, and long names.
const fn listed(flags: &'static str, valued: &'static str, long: &'static str) -> Options {
    Options::Only {
        flags,
        valued,
        long: WordList(long),
    }
}

pub(super) const fn only(name: &'static str, options: Options, operands: Operands) -> Program {
    Program {
        name,
        options,
        operands,
    }
}

impl Program {
    pub(super) const fn with(self, operands: Operands) -> Self {
        Self { operands, ..self }
    }
}

pub(super) fn programs() -> impl Iterator<Item = Program> {
    let free = FREE.words();
    let free = free.map(|name| only(name, Options::Any, Operands::Any));
    free.chain(PROGRAMS.iter().copied())
}

/// Programs that only read with any options and operands. Not `test`, which runs code in a
/// subscript after `-v`.
const FREE: WordList = WordList(
    "basename cat cd cksum cmp column comm cut df diff dirname du echo egrep false fgrep fold grep
     groups head hexdump id join jq ls md5sum nl nproc od paste pwd readlink realpath rev seq
     sha1sum sha256sum sha512sum stat strings tac tail tr true type uname wc which whoami",
);

/// Other programs, in alphabetical order.
const PROGRAMS: &[Program] = &[
    // Without one of these it runs its operand.
    only(
        "command",
        listed("vV", "", ""),
        Operands::With(WordList("-v -V")),
    ),
    // An operand without a plus sets the clock.
    only(
        "date",
        listed("uR", "I", "--utc --iso-8601 --rfc-3339 --rfc-email"),
        Operands::Beginning("+"),
    ),
    only("file", FILE, Operands::Any),
    only("find", FIND, Operands::Any),
    // With an option it sets a variable.
    only("printf", listed("", "", ""), Operands::Any),
    only("rg", RG, Operands::Any),
    only(
        "sed",
        listed("nEr", "", "--quiet --silent --regexp-extended"),
        Operands::LineNumbers,
    ),
    only("sort", SORT, Operands::Any),
    only("tree", TREE, Operands::Any),
    // The second operand is the output file.
    only(
        "uniq",
        listed("cdiuz", "fsw", "--count --ignore-case --repeated --unique"),
        Operands::Most(1),
    ),
];

const FILE: Options = listed(
    "bhikLNr0",
    "F",
    "--brief --dereference --mime --mime-encoding --mime-type",
);

const FIND: Options = listed(
    "HLP",
    "",
    "-a -amin -and -anewer -atime -cmin -cnewer -ctime -daystart -depth -empty -executable -false
     -follow -fstype -gid -group -ilname -iname -inum -ipath -iregex -iwholename -links -lname -ls
     -maxdepth -mindepth -mmin -mount -mtime -name -newer -newermt -nogroup -not -nouser -o -or
     -path -perm -print -print0 -printf -prune -quit -readable -regex -regextype -samefile -size
     -true -type -uid -user -wholename -writable -xdev -xtype",
);

const RG: Options = listed(
    "0.acFhHiIlLnNopPqsSuUvVwx",
    "ABCdeEfgjmMrtT",
    "--after-context --before-context --case-sensitive --color --column --context --count
     --count-matches --crlf --encoding --files --files-with-matches --files-without-match
     --fixed-strings --follow --glob --heading --hidden --iglob --ignore-case --invert-match --json
     --line-number --max-columns --max-count --max-depth --max-filesize --multiline
     --multiline-dotall --no-config --no-filename --no-heading --no-ignore --no-ignore-vcs
     --no-line-number --no-messages --null --only-matching --passthru --pcre2 --pretty --quiet
     --regexp --replace --smart-case --sort --sortr --stats --text --threads --trim --type
     --type-list --type-not --version --vimgrep --with-filename --word-regexp",
);

const SORT: Options = listed(
    "bcCdfghiMmnRrsuVz",
    "kt",
    "--field-separator --human-numeric-sort --ignore-case --key --numeric-sort --reverse --unique
     --version-sort",
);

const TREE: Options = listed(
    "aCdDfFghiJlnNprstuvxX",
    "ILP",
    "--dirsfirst --filelimit --gitignore --noreport",
);
