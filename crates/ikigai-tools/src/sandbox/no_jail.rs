//! Where there is no sandbox.

use std::io;
use std::path::Path;

use crate::Confinement;

/// A sandbox that nobody has.
#[derive(Debug)]
pub(crate) enum Jail {}

impl Jail {
    /// There is none.
    #[expect(clippy::unnecessary_wraps, reason = "it can fail where there is one")]
    pub(crate) fn of(_confinement: &Confinement, _program: &Path) -> io::Result<Option<Self>> {
        Ok(None)
    }

    /// Nobody can.
    pub(crate) fn enter(self) -> io::Result<()> {
        match self {}
    }
}
