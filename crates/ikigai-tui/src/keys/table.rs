//! Table of actions: names, modes, default keys and help.

use super::KeyMode;
use crate::input::EditCommand;

/// One action of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ActionEntry {
    /// The action.
    pub action: Action,
    /// Its name in the configuration.
    pub name: &'static str,
    /// Default keys per mode; a configured key applies in the first of these modes.
    pub keys: &'static [(KeyMode, &'static [&'static str])],
    /// Description in the help.
    pub help: &'static str,
}

/// Defines the actions other than edits, with their entries.
macro_rules! actions {
    ($($action:ident $name:literal [$($mode:ident: $($key:literal)+),+] $help:literal)+) => {
        /// Meaning of a key.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Action {
            /// Changes the input.
            Edit(EditCommand),
            /// Goes to the agent of this number.
            Agent(u8),
            $(#[doc = $help] $action,)+
        }

        const ACTIONS: &[ActionEntry] = &[$(ActionEntry {
            action: Action::$action,
            name: $name,
            keys: &[$((KeyMode::$mode, &[$($key),+])),+],
            help: $help,
        }),+];
    };
}

actions! {
    Send "send" [Input: "enter"] "send the message; queue it while the agent works"
    SendNow "send-now" [Input: "ctrl-s"] "interrupt the answer and send queued messages"
    Complete "complete" [Input: "tab"] "complete"
    SearchHistory "search-history" [Input: "ctrl-r"] "search in sent messages"
    HistoryPrevious "history-previous" [Input: "alt-p"] "previous message"
    HistoryNext "history-next" [Input: "alt-n"] "next message"
    Editor "editor" [Input: "ctrl-g"] "edit the message in $EDITOR"
    DeleteOrQuit "delete-or-quit" [Input: "ctrl-d"] "delete forward; quit if the input is empty"
    CycleApproval "cycle-approval" [Input: "shift-tab"] "change the permission mode: read, ask, edits"

    TreeParent "parent" [Always: "ctrl-x up", Empty: "ctrl-up" "alt-up"] "go to the parent agent"
    TreeChild "child" [Always: "ctrl-x down", Empty: "ctrl-down" "alt-down"] "go to the first child"
    TreePrevious "sibling-previous" [Always: "ctrl-x left", Empty: "ctrl-left" "alt-left"] "go to the previous sibling"
    TreeNext "sibling-next" [Always: "ctrl-x right", Empty: "ctrl-right" "alt-right"] "go to the next sibling"
    Board "board" [Always: "ctrl-x a", Empty: "left"] "show all agents"
    Inbox "inbox" [Always: "alt-i" "ctrl-x i"] "show the inbox; again: next entry"
    NextNeedingMe "next-needing-me" [Always: "ctrl-x n"] "go to the next agent that needs approval"
    PreviousAgent "previous-agent" [Always: "ctrl-x tab"] "go back to the previous agent"

    Escape "escape" [Always: "esc"] "close, reject, interrupt; twice: clear or browse"
    Interrupt "interrupt" [Always: "ctrl-c"] "copy, interrupt or clear the input; twice: quit"
    Suspend "suspend" [Always: "ctrl-z"] "suspend to the shell; twice: pause working agents too"
    Quit "quit" [Always: "ctrl-x q"] "quit (everything is saved)"
    Help "help" [Always: "f1", Empty: "?"] "show these keys"
    Browse "browse" [Always: "ctrl-t"] "browse and rewind the conversation"
    Redraw "redraw" [Always: "ctrl-l"] "redraw the screen"
    ToolOutput "tool-output" [Always: "ctrl-o"] "show all or only the last output of running tools"
    ScrollUp "scroll-up" [Always: "shift-up"] "scroll up a line"
    ScrollDown "scroll-down" [Always: "shift-down"] "scroll down a line"
    ScrollPageUp "scroll-page-up" [Always: "page-up"] "scroll up a page"
    ScrollPageDown "scroll-page-down" [Always: "page-down"] "scroll down a page"
    ScrollHalfUp "scroll-half-up" [Always: "alt-page-up"] "scroll up half a page"
    ScrollHalfDown "scroll-half-down" [Always: "alt-page-down"] "scroll down half a page"
    ScrollTop "scroll-top" [Always: "ctrl-home", Empty: "home"] "scroll to the start"
    ScrollBottom "scroll-bottom" [Always: "ctrl-end", Empty: "end"] "scroll to the end"

    ListUp "list-up" [List: "up" "ctrl-p"] "move up"
    ListDown "list-down" [List: "down" "ctrl-n"] "move down"
    ListPageUp "list-page-up" [List: "page-up"] "move up a page"
    ListPageDown "list-page-down" [List: "page-down"] "move down a page"
    ListTake "list-take" [List: "tab"] "insert the selected entry"
    ListEnter "list-enter" [List: "enter"] "run a complete command, else insert the selected entry"

    SearchOlder "search-older" [Search: "ctrl-r" "up"] "older match"
    SearchNewer "search-newer" [Search: "ctrl-s" "down"] "newer match"
    SearchTake "search-take" [Search: "enter" "tab"] "use the match"
    SearchLeave "search-leave" [Search: "ctrl-g"] "cancel, as does esc"

    AnswerQuestion "answer-question" [ClosedQuestion: "tab"] "answer the question"
    AnswerOnce "answer-once" [Question: "y"] "allow once"
    AnswerAlways "answer-always" [Question: "a"] "always allow calls that match the pattern"
    AnswerPattern "answer-pattern" [Question: "e"] "edit the pattern"
    AnswerNo "answer-no" [Question: "n"] "reject"
    AnswerNoWhy "answer-no-why" [Question: "r"] "reject with a reason"
    QuestionUp "question-up" [Question: "up" "k"] "scroll up"
    QuestionDown "question-down" [Question: "down" "j"] "scroll down"
    QuestionPageUp "question-page-up" [Question: "page-up"] "scroll up a page"
    QuestionPageDown "question-page-down" [Question: "page-down" "space"] "scroll down a page"
    QuestionTop "question-top" [Question: "home" "g"] "scroll to the start"
    QuestionEnd "question-end" [Question: "end" "G"] "scroll to the end"

    OtherGo "other-go" [Others: "alt-g" "alt-y" "alt-a"] "open the question of another agent"
    OtherNo "other-no" [Others: "alt-n"] "reject it"

    BrowseUp "browse-up" [Browse: "up" "k"] "previous event"
    BrowseDown "browse-down" [Browse: "down" "j"] "next event"
    BrowseMessageUp "browse-message-up" [Browse: "["] "previous user message"
    BrowseMessageDown "browse-message-down" [Browse: "]"] "next user message"
    BrowseFirst "browse-first" [Browse: "g" "home"] "first event"
    BrowseLast "browse-last" [Browse: "G" "end"] "last event"
    BrowseUnfold "browse-unfold" [Browse: "enter" "space"] "expand or collapse the event"
    BrowseUnfoldAll "browse-unfold-all" [Browse: "O"] "expand or collapse all events"
    BrowseFind "browse-find" [Browse: "/"] "search"
    BrowseFindNext "browse-find-next" [Browse: "n"] "next match"
    BrowseFindPrevious "browse-find-previous" [Browse: "N"] "previous match"
    BrowseCopy "browse-copy" [Browse: "y"] "copy the event"
    BrowseCopyMarkdown "browse-copy-markdown" [Browse: "Y"] "copy the event as Markdown"
    BrowseRewind "browse-rewind" [Browse: "r"] "rewind to here"
    BrowseEdit "browse-edit" [Browse: "e"] "rewind to before this message and edit it"
    BrowseFork "browse-fork" [Browse: "f"] "fork an agent from here"
    BrowseMark "browse-mark" [Browse: "m"] "set a mark"
    BrowsePager "browse-pager" [Browse: "o"] "open the event in $PAGER"
    BrowseLeave "browse-leave" [Browse: "q" "esc"] "back to the input"

    BoardUp "board-up" [Board: "up" "k"] "previous agent"
    BoardDown "board-down" [Board: "down" "j"] "next agent"
    BoardGo "board-go" [Board: "enter" "y" "a"] "go to the agent and its question"
    BoardPeek "board-peek" [Board: "space"] "toggle the preview"
    BoardNo "board-no" [Board: "n"] "reject its question"
    BoardMail "board-mail" [Board: "s"] "send it a message"
    BoardInterrupt "board-interrupt" [Board: "i"] "interrupt it"
    BoardMerge "board-merge" [Board: "m"] "merge its result"
    BoardFork "board-fork" [Board: "f"] "fork it"
    BoardKill "board-kill" [Board: "x"] "kill it and its children (asks first)"
    BoardTree "board-tree" [Board: "t"] "toggle groups and tree"
    BoardFilter "board-filter" [Board: "/"] "filter by name"
    BoardLeave "board-leave" [Board: "q" "esc"] "back to the input"

    InboxUp "inbox-up" [Inbox: "up" "k"] "previous entry"
    InboxDown "inbox-down" [Inbox: "down" "j"] "next entry"
    InboxGo "inbox-go" [Inbox: "enter"] "go to its agent"
    InboxDismiss "inbox-dismiss" [Inbox: "d"] "remove it, unless it is a question"
    InboxPageUp "inbox-page-up" [Inbox: "page-up"] "scroll up a page"
    InboxPageDown "inbox-page-down" [Inbox: "page-down" "space"] "scroll down a page"
    InboxTop "inbox-top" [Inbox: "home" "g"] "scroll to the start"
    InboxEnd "inbox-end" [Inbox: "end" "G"] "scroll to the end"
    InboxLeave "inbox-leave" [Inbox: "q" "esc"] "back to the input"

    PickerUp "picker-up" [Picker: "up" "ctrl-p"] "move up"
    PickerDown "picker-down" [Picker: "down" "ctrl-n"] "move down"
    PickerPageUp "picker-page-up" [Picker: "page-up"] "move up a page"
    PickerPageDown "picker-page-down" [Picker: "page-down"] "move down a page"
    PickerTake "picker-take" [Picker: "enter" "tab"] "select; type to filter"
    PickerLeave "picker-leave" [Picker: "esc" "ctrl-g"] "cancel"

    OverlayUp "overlay-up" [Overlay: "up" "k"] "scroll up a line"
    OverlayDown "overlay-down" [Overlay: "down" "j"] "scroll down a line"
    OverlayPageUp "overlay-page-up" [Overlay: "page-up" "b"] "scroll up a page"
    OverlayPageDown "overlay-page-down" [Overlay: "page-down" "space"] "scroll down a page"
    OverlayTop "overlay-top" [Overlay: "home" "g"] "scroll to the start"
    OverlayBottom "overlay-bottom" [Overlay: "end" "G"] "scroll to the end"
    OverlayLeave "overlay-leave" [Overlay: "q" "esc" "enter"] "close"
}

/// Makes entries for edits of the input.
macro_rules! edits {
    ($($edit:ident $name:literal [$($key:literal)+] $help:literal)+) => {
        const EDITS: &[ActionEntry] = &[$(ActionEntry {
            action: Action::Edit(EditCommand::$edit),
            name: $name,
            keys: &[(KeyMode::Input, &[$($key),+])],
            help: $help,
        }),+];
    };
}

edits! {
    Newline "newline" ["alt-enter" "shift-enter" "ctrl-j"] "new line (or \\ then Enter)"
    Left "left" ["left" "ctrl-b"] "move left"
    Right "right" ["right" "ctrl-f"] "move right"
    WordLeft "word-left" ["ctrl-left" "alt-left" "alt-b"] "move to the start of the word"
    WordRight "word-right" ["ctrl-right" "alt-right" "alt-f"] "move to the end of the word"
    LineStart "line-start" ["home" "ctrl-a"] "move to the start of the line"
    LineEnd "line-end" ["end" "ctrl-e"] "move to the end of the line"
    TextStart "text-start" ["alt-<"] "move to the start of the text"
    TextEnd "text-end" ["alt->"] "move to the end of the text"
    Up "up" ["up" "ctrl-p"] "move up; in the first line: previous message"
    Down "down" ["down" "ctrl-n"] "move down; in the last line: next message"
    Backspace "backspace" ["backspace" "ctrl-h"] "delete backwards"
    DeleteForward "delete-forward" ["delete"] "delete forward"
    KillToEnd "kill-to-end" ["ctrl-k"] "cut to the end of the line"
    KillToStart "kill-to-start" ["ctrl-u"] "cut to the start of the line"
    KillWordBack "kill-word-back" ["ctrl-w" "alt-backspace" "ctrl-backspace"] "cut to the start of the word"
    KillWordForward "kill-word-forward" ["alt-d" "ctrl-delete"] "cut to the end of the word"
    Yank "yank" ["ctrl-y"] "paste the last cut"
    YankPop "yank-pop" ["alt-y"] "replace the paste with an earlier cut"
    Undo "undo" ["ctrl-_" "ctrl-/"] "undo"
    Redo "redo" ["alt-_"] "redo"
}

/// Makes entries for going to an agent by its number.
macro_rules! agents {
    ($($number:literal $name:literal $key:literal)+) => {
        const AGENTS: &[ActionEntry] = &[$(ActionEntry {
            action: Action::Agent($number),
            name: $name,
            keys: &[(KeyMode::Always, &[$key])],
            help: concat!("go to agent ", $number, " in the line above the input"),
        }),+];
    };
}

agents! {
    1 "agent-1" "ctrl-x 1"
    2 "agent-2" "ctrl-x 2"
    3 "agent-3" "ctrl-x 3"
    4 "agent-4" "ctrl-x 4"
    5 "agent-5" "ctrl-x 5"
    6 "agent-6" "ctrl-x 6"
    7 "agent-7" "ctrl-x 7"
    8 "agent-8" "ctrl-x 8"
    9 "agent-9" "ctrl-x 9"
}

/// Actions at the top of the on-screen help.
pub(super) const ESSENTIAL: &[(KeyMode, Action)] = &[
    (KeyMode::Input, Action::Send),
    (KeyMode::Input, Action::Edit(EditCommand::Newline)),
    (KeyMode::Always, Action::Escape),
    (KeyMode::Always, Action::Interrupt),
    (KeyMode::Input, Action::DeleteOrQuit),
    (KeyMode::Input, Action::Complete),
    (KeyMode::Input, Action::Edit(EditCommand::Up)),
    (KeyMode::Input, Action::SearchHistory),
    (KeyMode::Input, Action::Editor),
    (KeyMode::Input, Action::SendNow),
    (KeyMode::Input, Action::CycleApproval),
    (KeyMode::Always, Action::Browse),
    (KeyMode::Always, Action::ToolOutput),
    (KeyMode::Always, Action::ScrollPageUp),
    (KeyMode::Always, Action::ScrollPageDown),
    (KeyMode::Always, Action::Board),
    (KeyMode::Always, Action::Inbox),
    (KeyMode::Always, Action::TreeParent),
    (KeyMode::Always, Action::TreeChild),
    (KeyMode::Empty, Action::Help),
];

/// Returns all actions, in the order of the help.
pub fn entries() -> impl Iterator<Item = &'static ActionEntry> {
    ACTIONS.iter().chain(EDITS).chain(AGENTS)
}
