//! The suite that every store must pass.
//!
//! An engine's test target says how its stores are made and runs every check as a test of its
//! own name:
//!
//! ```ignore
//! use ikigai_testkit::conformance::Rig;
//!
//! struct SqliteRig { /* a temporary directory, the store, the second process */ }
//! impl SqliteRig { fn new() -> Self { … } }
//! impl Rig for SqliteRig { … }
//!
//! ikigai_testkit::store_conformance!(SqliteRig::new());
//! ```
//!
//! The expression is evaluated once per test and must yield a fresh, empty log each time. Checks
//! run under [`crate::block_on`], which is no tokio runtime.
//!
//! A check is a function in one of the folder's modules and one line in [`store_checks!`].

mod desk;
mod rows;
mod samples;

use std::sync::Arc;

use ikigai_core::{AgentId, RowRef};
use ikigai_store::Store;

/// A log on which two processes work.
pub trait Rig {
    /// The first process's store; the same one each time.
    fn store(&self) -> Arc<dyn Store>;

    /// The second process's store on the same log; made at the first call, then the same one.
    fn second(&self) -> Arc<dyn Store>;

    /// Ends the second process as a crash does: its lock is gone, and it gives nothing back.
    ///
    /// Checks drop what [`Self::second`] gave them before, and do not ask for it again.
    fn kill_second(&self);

    /// Appends a row past all checks, as an older, newer or faulty program might have left it:
    /// any kind name, control or not, at any time.
    fn inject(
        &self,
        agent: AgentId,
        kind_name: &str,
        content: Option<&str>,
        data: Option<&str>,
        control: bool,
    ) -> RowRef;
}

/// Makes one `#[test]` per check; see [`crate::conformance`].
#[macro_export]
macro_rules! store_conformance {
    ($rig:expr) => {
        $crate::store_checks! { [$crate::store_conformance_tests] { $rig } }
    };
}

/// Turns the list of checks into tests.
#[doc(hidden)]
#[macro_export]
macro_rules! store_conformance_tests {
    ({ $rig:expr } $($module:ident: $($check:ident)*;)*) => {
        $($(
            #[test]
            fn $check() {
                $crate::conformance::checks::$check(&$rig);
            }
        )*)*
    };
}

/// The list of all checks, by module.
#[doc(hidden)]
#[macro_export]
macro_rules! store_checks {
    ([$($callback:tt)*] $argument:tt) => {
        $($callback)* ! {
            $argument
            rows:
                insert_and_read_back_every_kind
                insert_refuses_unknown_kind
            ;
        }
    };
}

/// Turns the list of checks into functions, so that a check that is not listed is seen as dead.
macro_rules! check_functions {
    ({} $($module:ident: $($check:ident)*;)*) => {
        $($(
            /// Runs the check of this name; what it demands is said at its definition.
            pub fn $check(rig: &dyn super::Rig) {
                crate::block_on(super::$module::$check(rig));
            }
        )*)*
    };
}

/// The checks, each run to its end.
pub mod checks {
    store_checks! { [check_functions] {} }
}
