use rustix::process::{DumpableBehavior, dumpable_behavior};

use super::*;

#[test]
fn a_protected_process_cannot_be_looked_into() {
    protect();

    assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
}
