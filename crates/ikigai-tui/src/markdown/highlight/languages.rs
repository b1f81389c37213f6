//! Syntax tables of the supported languages.

use ikigai_core::word_list::WordList;

/// Lexer table of a family of languages.
pub(super) struct Language {
    /// Names in code fences, in lower case.
    pub(super) names: &'static [&'static str],
    pub(super) form: Form,
    pub(super) keywords: WordList,
    /// Keywords are case-insensitive.
    pub(super) any_case: bool,
    /// Openers of line comments.
    pub(super) line_comments: &'static [&'static str],
    /// Start and end of block comments, and a flag: they nest.
    pub(super) block_comment: Option<(&'static str, &'static str, bool)>,
    pub(super) strings: &'static [Quote],
    /// Characters of names in addition to letters, digits and `_`.
    pub(super) name_characters: &'static str,
}

/// Lexical form of a language.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// Words, strings, comments and numbers.
    Code,
    /// Like code, but `#` begins a comment only after a space.
    Shell,
    /// Keys before `:` or `=`, and their values.
    Keys,
    /// Tags between `<` and `>`.
    Tags,
    /// Lines that are added or removed.
    Diff,
}

/// Delimiters of a string.
pub(super) struct Quote {
    pub(super) open: &'static str,
    pub(super) close: &'static str,
    /// A backslash escapes the next character.
    pub(super) escapes: bool,
    /// It may span lines.
    pub(super) goes_on: bool,
}

const fn quote(open: &'static str, close: &'static str, escapes: bool, goes_on: bool) -> Quote {
    Quote {
        open,
        close,
        escapes,
        goes_on,
    }
}

/// Returns the language of a code fence, if known.
pub(super) fn named(name: &str) -> Option<&'static Language> {
    let name = name.to_ascii_lowercase();
    LANGUAGES
        .iter()
        .find(|language| language.names.contains(&name.as_str()))
}

/// Default values for the fields.
const PLAIN: Language = Language {
    names: &[],
    form: Form::Code,
    keywords: WordList(""),
    any_case: false,
    line_comments: &["//"],
    block_comment: Some(("/*", "*/", false)),
    strings: &[quote("\"", "\"", true, false), quote("'", "'", true, false)],
    name_characters: "",
};

static LANGUAGES: [Language; 13] = [
    Language {
        names: &["rust", "rs"],
        keywords: WordList(
            "as async await break const continue crate dyn else enum extern false fn for if impl in
             let loop match mod move mut pub ref return self Self static struct super trait true
             type unsafe use where while",
        ),
        block_comment: Some(("/*", "*/", true)),
        strings: &[
            quote("r##\"", "\"##", false, true),
            quote("r#\"", "\"#", false, true),
            quote("r\"", "\"", false, true),
            quote("b\"", "\"", true, true),
            quote("\"", "\"", true, true),
        ],
        ..PLAIN
    },
    Language {
        names: &["python", "py", "python3", "pycon"],
        keywords: WordList(
            "False None True and as assert async await break case class continue def del elif else
             except finally for from global if import in is lambda match nonlocal not or pass raise
             return try while with yield",
        ),
        line_comments: &["#"],
        block_comment: None,
        strings: &[
            quote("\"\"\"", "\"\"\"", true, true),
            quote("'''", "'''", true, true),
            quote("\"", "\"", true, false),
            quote("'", "'", true, false),
        ],
        ..PLAIN
    },
    Language {
        names: &[
            "javascript",
            "js",
            "jsx",
            "mjs",
            "cjs",
            "typescript",
            "ts",
            "tsx",
            "node",
        ],
        keywords: WordList(
            "abstract as async await break case catch class const continue debugger declare default
             delete do else enum export extends false finally for from function if implements
             import in instanceof interface keyof let new null of private protected public readonly
             return static super switch this throw true try type typeof undefined var void while
             yield",
        ),
        strings: &[
            quote("\"", "\"", true, false),
            quote("'", "'", true, false),
            quote("`", "`", true, true),
        ],
        name_characters: "$",
        ..PLAIN
    },
    Language {
        names: &[
            "c", "h", "cpp", "c++", "cc", "cxx", "hpp", "java", "csharp", "c#", "cs", "kotlin",
            "kt", "swift", "scala", "dart", "php", "zig", "objc",
        ],
        keywords: WordList(
            "abstract auto bool boolean break byte case catch char class const constexpr continue
             default delete do double else enum explicit export extends extern false final finally
             float for foreach friend fun func function goto if implements import in inline int
             interface internal is let long namespace new noexcept null nullptr operator override
             package private protected public register return short signed sizeof static string
             struct super switch template this throw throws true try typedef typename union
             unsigned using val var virtual void volatile when while #include #define #if #ifdef
             #ifndef #else #endif #pragma",
        ),
        name_characters: "#",
        ..PLAIN
    },
    Language {
        names: &["go", "golang"],
        keywords: WordList(
            "any bool break byte case chan const continue default defer else error fallthrough
             false for func go goto if import int interface map nil package range return rune
             select string struct switch true type var",
        ),
        strings: &[
            quote("\"", "\"", true, false),
            quote("'", "'", true, false),
            quote("`", "`", false, true),
        ],
        ..PLAIN
    },
    Language {
        names: &[
            "sh",
            "bash",
            "shell",
            "zsh",
            "fish",
            "console",
            "shellsession",
            "dockerfile",
            "docker",
            "make",
            "makefile",
        ],
        form: Form::Shell,
        keywords: WordList(
            "case do done elif else esac export fi for function if in local return set then unset
             until while FROM RUN COPY CMD ENV WORKDIR ENTRYPOINT",
        ),
        line_comments: &["#"],
        block_comment: None,
        strings: &[quote("\"", "\"", true, true), quote("'", "'", false, true)],
        name_characters: "-",
        ..PLAIN
    },
    Language {
        names: &["json", "jsonc", "json5", "jsonl"],
        form: Form::Keys,
        keywords: WordList("true false null"),
        strings: &[quote("\"", "\"", true, false)],
        ..PLAIN
    },
    Language {
        names: &[
            "toml",
            "yaml",
            "yml",
            "ini",
            "cfg",
            "conf",
            "properties",
            "env",
        ],
        form: Form::Keys,
        keywords: WordList("true false null yes no on off"),
        line_comments: &["#", ";"],
        block_comment: None,
        strings: &[
            quote("\"\"\"", "\"\"\"", true, true),
            quote("'''", "'''", false, true),
            quote("\"", "\"", true, false),
            quote("'", "'", false, false),
        ],
        name_characters: "-.",
        ..PLAIN
    },
    Language {
        names: &["html", "xml", "svg", "xhtml", "vue", "svelte", "htm"],
        form: Form::Tags,
        line_comments: &[],
        block_comment: Some(("<!--", "-->", false)),
        strings: &[quote("\"", "\"", false, true), quote("'", "'", false, true)],
        name_characters: "-:",
        ..PLAIN
    },
    Language {
        names: &["css", "scss", "sass", "less"],
        form: Form::Keys,
        keywords: WordList("@media @import @keyframes @font-face @use @include"),
        line_comments: &[],
        name_characters: "-@",
        ..PLAIN
    },
    Language {
        names: &["sql", "postgresql", "sqlite", "mysql", "plsql"],
        keywords: WordList(
            "all alter and as asc begin between by case check commit conflict constraint create
             cross default delete desc distinct do drop else end exists false foreign from full
             group having if in index inner insert into is join key left like limit not null offset
             on or order outer primary references replace returning right rollback select set table
             then transaction trigger true union unique update using values view when where with",
        ),
        any_case: true,
        line_comments: &["--"],
        strings: &[
            quote("'", "'", false, true),
            quote("\"", "\"", false, false),
        ],
        ..PLAIN
    },
    Language {
        names: &["diff", "patch", "udiff"],
        form: Form::Diff,
        ..PLAIN
    },
    Language {
        names: &[
            "lua", "ruby", "rb", "perl", "pl", "r", "julia", "elixir", "nix",
        ],
        keywords: WordList(
            "and begin break case class def do else elseif elsif end ensure false for function if
             in let local module my next nil not or package repeat require rescue return self sub
             then true unless until use when while yield",
        ),
        line_comments: &["#", "--"],
        block_comment: None,
        ..PLAIN
    },
];
