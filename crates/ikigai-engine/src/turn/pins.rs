//! Pinned documents: read when a turn starts, never between its requests.

use std::path::PathBuf;

use ikigai_core::settings::Pin;
use ikigai_core::{Event, Settings};
use ikigai_store::blobs;
use ikigai_tools::Place;

use super::turn_loop::TurnLoop;
use crate::EngineError;
use crate::documents::{Document, documents};
use crate::frontend::{FrontEnd, UiEvent};
use crate::ledger::{CommitPlan, read_held};

impl TurnLoop<'_> {
    /// Reads pinned files; stores new contents as a blob and a row before the request.
    pub(super) async fn read_pins(&mut self, front: &mut FrontEnd<'_>) -> Result<(), EngineError> {
        let pins = self.worker.settings().pins.clone().unwrap_or_default();
        if pins.is_empty() {
            return Ok(());
        }
        let mut fresh = Vec::new();
        for pin in &pins {
            fresh.push(self.read_pin(pin, front).await?);
        }
        if fresh != pins {
            let settings = Settings {
                pins: Some(fresh),
                ..Settings::default()
            };
            let row = Event::set("pin", settings.as_set());
            let rows = self
                .worker
                .commit(CommitPlan::events(vec![row]).waiting(front))
                .await?;
            front.told(rows);
        }
        self.turn.settings = self.worker.settings().clone();
        self.turn.target.documents = read_held!(front, async {
            Ok::<_, EngineError>(
                documents(self.worker.engine().reader(), self.worker.settings()).await?,
            )
        });
        Ok(())
    }

    async fn read_pin(&self, pin: &Pin, front: &mut FrontEnd<'_>) -> Result<Pin, EngineError> {
        let path = pin.path.clone().unwrap_or_default();
        let place = Place {
            workdir: PathBuf::from(self.worker.settings().workdir.as_deref().unwrap_or("/")),
            hidden: self.worker.engine().safety.hidden.clone(),
        };
        let hash = match Document::read_pinned(self.worker.engine(), &place, &path).await {
            Ok(document) => {
                let hash = blobs::hash_of(&document.bytes).to_string();
                if pin.hash.as_ref() != Some(&hash) {
                    self.worker.ledger.put_blob(&document.bytes, front).await?;
                }
                Some(hash)
            }
            Err(reason) => {
                front.tell(UiEvent::Warning(format!("pinned file left out: {reason}")));
                None
            }
        };
        Ok(Pin {
            path: pin.path.clone(),
            hash,
        })
    }
}
