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
    Send "send" [Input: "enter"] "sends the message, or queues it while the agent works"
    SendNow "send-now" [Input: "ctrl-s"] "interrupts the answer and sends what is queued"
    Complete "complete" [Input: "tab"] "shows what can stand here"
    SearchHistory "search-history" [Input: "ctrl-r"] "searches what was sent before"
    HistoryPrevious "history-previous" [Input: "alt-p"] "the message sent before; so does up in the first row"
    HistoryNext "history-next" [Input: "alt-n"] "the message sent after; so does down in the last row"
    Editor "editor" [Input: "ctrl-g"] "edits the message in $EDITOR"
    DeleteOrQuit "delete-or-quit" [Input: "ctrl-d"] "deletes forward; with empty input it quits, and all is kept"
    CycleApproval "cycle-approval" [Input: "shift-tab"] "the next permission mode: read, ask or edits"

    TreeParent "parent" [Always: "ctrl-x up", Empty: "ctrl-up" "alt-up"] "goes to the parent"
    TreeChild "child" [Always: "ctrl-x down", Empty: "ctrl-down" "alt-down"] "goes to the first child"
    TreePrevious "sibling-previous" [Always: "ctrl-x left", Empty: "ctrl-left" "alt-left"] "goes to the sibling before"
    TreeNext "sibling-next" [Always: "ctrl-x right", Empty: "ctrl-right" "alt-right"] "goes to the sibling after"
    Board "board" [Always: "ctrl-x a", Empty: "left"] "shows the board of all agents"
    NextNeedingMe "next-needing-me" [Always: "ctrl-x n"] "goes to the next agent that needs an answer"
    PreviousAgent "previous-agent" [Always: "ctrl-x tab"] "goes to the agent where you were before"

    Escape "escape" [Always: "esc"] "closes what is open; answers no; interrupts; twice clears, or browses"
    Interrupt "interrupt" [Always: "ctrl-c"] "copies a selection; interrupts; clears the input; twice quits"
    Suspend "suspend" [Always: "ctrl-z"] "back to the shell; twice also pauses the agents at work"
    Quit "quit" [Always: "ctrl-x q"] "quits; everything is kept"
    Help "help" [Always: "f1", Empty: "?"] "shows these keys"
    Browse "browse" [Always: "ctrl-t"] "browses the conversation"
    Redraw "redraw" [Always: "ctrl-l"] "draws the screen anew"
    ToolOutput "tool-output" [Always: "ctrl-o"] "shows all output of running tools, or only the last lines"
    ScrollUp "scroll-up" [Always: "shift-up"] "scrolls up by a row"
    ScrollDown "scroll-down" [Always: "shift-down"] "scrolls down by a row"
    ScrollPageUp "scroll-page-up" [Always: "page-up"] "scrolls up by a page"
    ScrollPageDown "scroll-page-down" [Always: "page-down"] "scrolls down by a page"
    ScrollHalfUp "scroll-half-up" [Always: "alt-page-up"] "scrolls up by half a page"
    ScrollHalfDown "scroll-half-down" [Always: "alt-page-down"] "scrolls down by half a page"
    ScrollTop "scroll-top" [Always: "ctrl-home", Empty: "home"] "scrolls to the beginning"
    ScrollBottom "scroll-bottom" [Always: "ctrl-end", Empty: "end"] "scrolls to the end"

    ListUp "list-up" [List: "up" "ctrl-p"] "marks the entry above"
    ListDown "list-down" [List: "down" "ctrl-n"] "marks the entry below"
    ListPageUp "list-page-up" [List: "page-up"] "marks the entry a page above"
    ListPageDown "list-page-down" [List: "page-down"] "marks the entry a page below"
    ListTake "list-take" [List: "tab"] "takes the marked entry"
    ListEnter "list-enter" [List: "enter"] "runs the line if it is complete as typed, else takes the marked entry"

    SearchOlder "search-older" [Search: "ctrl-r" "up"] "goes to an older match"
    SearchNewer "search-newer" [Search: "ctrl-s" "down"] "goes to a newer match"
    SearchTake "search-take" [Search: "enter" "tab"] "takes the match into the input"
    SearchLeave "search-leave" [Search: "ctrl-g"] "goes back to what was typed; so does esc"

    AnswerQuestion "answer-question" [Asked: "tab"] "lets the question take the keys"
    AnswerOnce "answer-once" [Question: "y"] "allows it this once"
    AnswerAlways "answer-always" [Question: "a"] "allows what fits the pattern from now on"
    AnswerPattern "answer-pattern" [Question: "e"] "edits the pattern"
    AnswerNo "answer-no" [Question: "n"] "refuses it"
    AnswerNoWhy "answer-no-why" [Question: "r"] "refuses it, and says why; esc refuses and stops the turn"
    QuestionUp "question-up" [Question: "up" "k"] "scrolls the question up"
    QuestionDown "question-down" [Question: "down" "j"] "scrolls the question down"
    QuestionPageUp "question-page-up" [Question: "page-up"] "scrolls the question up by a page"
    QuestionPageDown "question-page-down" [Question: "page-down" "space"] "scrolls the question down by a page"
    QuestionTop "question-top" [Question: "home" "g"] "scrolls to the beginning of the question"
    QuestionEnd "question-end" [Question: "end" "G"] "scrolls to the end of the question"

    OtherGo "other-go" [Others: "alt-g" "alt-y" "alt-a"] "opens the question of another agent"
    OtherNo "other-no" [Others: "alt-n"] "refuses it"

    BrowseUp "browse-up" [Browse: "up" "k"] "the event above"
    BrowseDown "browse-down" [Browse: "down" "j"] "the event below"
    BrowseMessageUp "browse-message-up" [Browse: "["] "the message of yours above"
    BrowseMessageDown "browse-message-down" [Browse: "]"] "the message of yours below"
    BrowseFirst "browse-first" [Browse: "g" "home"] "the first event"
    BrowseLast "browse-last" [Browse: "G" "end"] "the last event"
    BrowseUnfold "browse-unfold" [Browse: "enter" "space"] "unfolds or folds the event"
    BrowseUnfoldAll "browse-unfold-all" [Browse: "O"] "unfolds or folds all events"
    BrowseFind "browse-find" [Browse: "/"] "finds text"
    BrowseFindNext "browse-find-next" [Browse: "n"] "the next place where it is"
    BrowseFindPrevious "browse-find-previous" [Browse: "N"] "the place before where it is"
    BrowseCopy "browse-copy" [Browse: "y"] "copies the event"
    BrowseCopyMarkdown "browse-copy-markdown" [Browse: "Y"] "copies the event as Markdown"
    BrowseRewind "browse-rewind" [Browse: "r"] "goes back to here"
    BrowseEdit "browse-edit" [Browse: "e"] "goes back to before this message, and edits it"
    BrowseFork "browse-fork" [Browse: "f"] "forks an agent that remembers up to here"
    BrowseMark "browse-mark" [Browse: "m"] "sets a mark"
    BrowsePager "browse-pager" [Browse: "o"] "opens the event in $PAGER"
    BrowseLeave "browse-leave" [Browse: "q" "esc"] "back to the input"

    BoardUp "board-up" [Board: "up" "k"] "the agent above"
    BoardDown "board-down" [Board: "down" "j"] "the agent below"
    BoardGo "board-go" [Board: "enter" "y" "a"] "goes to the agent and opens its question"
    BoardPeek "board-peek" [Board: "space"] "shows what it does, or not"
    BoardNo "board-no" [Board: "n"] "refuses what it asks"
    BoardMail "board-mail" [Board: "s"] "sends it mail"
    BoardInterrupt "board-interrupt" [Board: "i"] "interrupts it"
    BoardMerge "board-merge" [Board: "m"] "merges what came of it"
    BoardFork "board-fork" [Board: "f"] "forks it"
    BoardKill "board-kill" [Board: "x"] "kills it and its children, after a question"
    BoardTree "board-tree" [Board: "t"] "shows groups, or the tree"
    BoardFilter "board-filter" [Board: "/"] "shows only names that match"
    BoardLeave "board-leave" [Board: "q" "esc"] "back to the input"

    PickerUp "picker-up" [Picker: "up" "ctrl-p"] "the entry above"
    PickerDown "picker-down" [Picker: "down" "ctrl-n"] "the entry below"
    PickerPageUp "picker-page-up" [Picker: "page-up"] "the entry a page above"
    PickerPageDown "picker-page-down" [Picker: "page-down"] "the entry a page below"
    PickerTake "picker-take" [Picker: "enter" "tab"] "takes the marked entry; letters narrow the choice"
    PickerLeave "picker-leave" [Picker: "esc" "ctrl-g"] "takes none"

    OverlayUp "overlay-up" [Overlay: "up" "k"] "scrolls up by a row"
    OverlayDown "overlay-down" [Overlay: "down" "j"] "scrolls down by a row"
    OverlayPageUp "overlay-page-up" [Overlay: "page-up" "b"] "scrolls up by a page"
    OverlayPageDown "overlay-page-down" [Overlay: "page-down" "space"] "scrolls down by a page"
    OverlayTop "overlay-top" [Overlay: "home" "g"] "scrolls to the beginning"
    OverlayBottom "overlay-bottom" [Overlay: "end" "G"] "scrolls to the end"
    OverlayLeave "overlay-leave" [Overlay: "q" "esc" "enter"] "closes it"
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
    Newline "newline" ["alt-enter" "shift-enter" "ctrl-j"] "begins a new line; so does enter after a backslash"
    Left "left" ["left" "ctrl-b"] "one to the left"
    Right "right" ["right" "ctrl-f"] "one to the right"
    WordLeft "word-left" ["ctrl-left" "alt-left" "alt-b"] "to the beginning of the word"
    WordRight "word-right" ["ctrl-right" "alt-right" "alt-f"] "to the end of the word"
    LineStart "line-start" ["home" "ctrl-a"] "to the beginning of the line"
    LineEnd "line-end" ["end" "ctrl-e"] "to the end of the line"
    TextStart "text-start" ["alt-<"] "to the beginning of the text"
    TextEnd "text-end" ["alt->"] "to the end of the text"
    Up "up" ["up" "ctrl-p"] "one row up; in the first row the message sent before"
    Down "down" ["down" "ctrl-n"] "one row down; in the last row the message sent after"
    Backspace "backspace" ["backspace" "ctrl-h"] "deletes backwards"
    DeleteForward "delete-forward" ["delete"] "deletes forward"
    KillToEnd "kill-to-end" ["ctrl-k"] "kills to the end of the line"
    KillToStart "kill-to-start" ["ctrl-u"] "kills to the beginning of the line"
    KillWordBack "kill-word-back" ["ctrl-w" "alt-backspace" "ctrl-backspace"] "kills to the beginning of the word"
    KillWordForward "kill-word-forward" ["alt-d" "ctrl-delete"] "kills to the end of the word"
    Yank "yank" ["ctrl-y"] "brings back what was killed"
    YankPop "yank-pop" ["alt-y"] "after that: what was killed before"
    Undo "undo" ["ctrl-_" "ctrl-/"] "undoes"
    Redo "redo" ["alt-_"] "does again what was undone"
}

/// Makes entries for going to an agent by its number.
macro_rules! agents {
    ($($number:literal $name:literal $key:literal)+) => {
        const AGENTS: &[ActionEntry] = &[$(ActionEntry {
            action: Action::Agent($number),
            name: $name,
            keys: &[(KeyMode::Always, &[$key])],
            help: concat!("goes to agent ", $number, " of the tree line"),
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

/// Returns all actions, in the order of the help.
pub fn entries() -> impl Iterator<Item = &'static ActionEntry> {
    ACTIONS.iter().chain(EDITS).chain(AGENTS)
}
