//! Programs and options that only read.

/// Program that only reads if called with these options and operands.
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) options: Options,
    pub(super) operands: Operands,
}

/// Options that a call may have.
///
/// A word that begins with a dash counts as an option anywhere, so that no option is overlooked.
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
        long: &'static [&'static str],
    },
}

/// Words other than options that a call may have.
#[derive(Clone, Copy)]
pub(super) enum Operands {
    /// Any.
    Any,
    /// At most this many.
    Most(usize),
    /// Any if one of these options comes first, else none. Only options that cannot take the next
    /// word as their value may precede it.
    With(&'static [&'static str]),
    /// The first of all words must be one of these.
    First(&'static [&'static str]),
    /// None, or the first of all words is one of these.
    NoneOrFirst(&'static [&'static str]),
    /// Each has this prefix.
    Beginning(&'static str),
    /// The first is a `sed` program that only prints lines by their numbers.
    LineNumbers,
}

const NO_OPTIONS: Options = Options::Only {
    flags: "",
    valued: "",
    long: &[],
};

const fn any(name: &'static str) -> Program {
    only(name, Options::Any, Operands::Any)
}

const fn only(name: &'static str, options: Options, operands: Operands) -> Program {
    Program {
        name,
        options,
        operands,
    }
}

/// Programs, in alphabetical order. Not `test`, which runs code in a subscript after `-v`.
pub(super) const PROGRAMS: &[Program] = &[
    any("basename"),
    any("cat"),
    any("cd"),
    any("cksum"),
    any("cmp"),
    any("column"),
    any("comm"),
    only(
        "command",
        Options::Only {
            flags: "vV",
            valued: "",
            long: &[],
        },
        // Without one of these it runs its operand.
        Operands::With(&["-v", "-V"]),
    ),
    any("cut"),
    // An operand without a plus sets the clock.
    only(
        "date",
        Options::Only {
            flags: "uR",
            valued: "I",
            long: &["--utc", "--iso-8601", "--rfc-3339", "--rfc-email"],
        },
        Operands::Beginning("+"),
    ),
    any("df"),
    any("diff"),
    any("dirname"),
    any("du"),
    any("echo"),
    any("egrep"),
    any("false"),
    any("fgrep"),
    only(
        "file",
        Options::Only {
            flags: "bhikLNr0",
            valued: "F",
            long: &[
                "--brief",
                "--dereference",
                "--mime",
                "--mime-encoding",
                "--mime-type",
            ],
        },
        Operands::Any,
    ),
    only("find", FIND, Operands::Any),
    any("fold"),
    any("grep"),
    any("groups"),
    any("head"),
    any("hexdump"),
    any("id"),
    any("join"),
    any("jq"),
    any("ls"),
    any("md5sum"),
    any("nl"),
    any("nproc"),
    any("od"),
    any("paste"),
    // With an option it sets a variable.
    only("printf", NO_OPTIONS, Operands::Any),
    any("pwd"),
    any("readlink"),
    any("realpath"),
    any("rev"),
    only("rg", RG, Operands::Any),
    only(
        "sed",
        Options::Only {
            flags: "nEr",
            valued: "",
            long: &["--quiet", "--silent", "--regexp-extended"],
        },
        Operands::LineNumbers,
    ),
    any("seq"),
    any("sha1sum"),
    any("sha256sum"),
    any("sha512sum"),
    only(
        "sort",
        Options::Only {
            flags: "bcCdfghiMmnRrsuVz",
            valued: "kt",
            long: &[
                "--field-separator",
                "--human-numeric-sort",
                "--ignore-case",
                "--key",
                "--numeric-sort",
                "--reverse",
                "--unique",
                "--version-sort",
            ],
        },
        Operands::Any,
    ),
    any("stat"),
    any("strings"),
    any("tac"),
    any("tail"),
    any("tr"),
    only(
        "tree",
        Options::Only {
            flags: "aCdDfFghiJlnNprstuvxX",
            valued: "ILP",
            long: &["--dirsfirst", "--filelimit", "--gitignore", "--noreport"],
        },
        Operands::Any,
    ),
    any("true"),
    any("type"),
    any("uname"),
    // The second operand is the output file.
    only(
        "uniq",
        Options::Only {
            flags: "cdiuz",
            valued: "fsw",
            long: &["--count", "--ignore-case", "--repeated", "--unique"],
        },
        Operands::Most(1),
    ),
    any("wc"),
    any("which"),
    any("whoami"),
];

const FIND: Options = Options::Only {
    flags: "HLP",
    valued: "",
    long: &[
        "-a",
        "-amin",
        "-and",
        "-anewer",
        "-atime",
        "-cmin",
        "-cnewer",
        "-ctime",
        "-daystart",
        "-depth",
        "-empty",
        "-executable",
        "-false",
        "-follow",
        "-fstype",
        "-gid",
        "-group",
        "-ilname",
        "-iname",
        "-inum",
        "-ipath",
        "-iregex",
        "-iwholename",
        "-links",
        "-lname",
        "-ls",
        "-maxdepth",
        "-mindepth",
        "-mmin",
        "-mount",
        "-mtime",
        "-name",
        "-newer",
        "-newermt",
        "-nogroup",
        "-not",
        "-nouser",
        "-o",
        "-or",
        "-path",
        "-perm",
        "-print",
        "-print0",
        "-printf",
        "-prune",
        "-quit",
        "-readable",
        "-regex",
        "-regextype",
        "-samefile",
        "-size",
        "-true",
        "-type",
        "-uid",
        "-user",
        "-wholename",
        "-writable",
        "-xdev",
        "-xtype",
    ],
};

const RG: Options = Options::Only {
    flags: "0.acFhHiIlLnNopPqsSuUvVwx",
    valued: "ABCdeEfgjmMrtT",
    long: &[
        "--after-context",
        "--before-context",
        "--case-sensitive",
        "--color",
        "--column",
        "--context",
        "--count",
        "--count-matches",
        "--crlf",
        "--encoding",
        "--files",
        "--files-with-matches",
        "--files-without-match",
        "--fixed-strings",
        "--follow",
        "--glob",
        "--heading",
        "--hidden",
        "--iglob",
        "--ignore-case",
        "--invert-match",
        "--json",
        "--line-number",
        "--max-columns",
        "--max-count",
        "--max-depth",
        "--max-filesize",
        "--multiline",
        "--multiline-dotall",
        "--no-config",
        "--no-filename",
        "--no-heading",
        "--no-ignore",
        "--no-ignore-vcs",
        "--no-line-number",
        "--no-messages",
        "--null",
        "--only-matching",
        "--passthru",
        "--pcre2",
        "--pretty",
        "--quiet",
        "--regexp",
        "--replace",
        "--smart-case",
        "--sort",
        "--sortr",
        "--stats",
        "--text",
        "--threads",
        "--trim",
        "--type",
        "--type-list",
        "--type-not",
        "--version",
        "--vimgrep",
        "--with-filename",
        "--word-regexp",
    ],
};
