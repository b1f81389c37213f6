//! Names of tools, now and in older logs.

/// Name of the to-do list.
pub const TODO: &str = "todo";

/// Its name in older logs, which models that read them still use. No other tool may have it.
pub(crate) const OLD_TODO: &str = "list";

/// Returns the present name of a tool that had another one in older logs.
pub fn current_name(name: &str) -> &str {
    match name {
        OLD_TODO => TODO,
        name => name,
    }
}
