//! What clients do with runs that flow control holds back.

use outlast::EngineError;
use serde_json::json;

use super::{Client, delivered, request_id};
use crate::case::{Case, Deed, guest_id};
use crate::interpret::{Input, WORKFLOW};
use crate::ledger::{Asked, Told};

impl Client {
    /// Does something with a guest; whether there is one.
    pub(super) async fn act_on_guest(&self, case: &Case, number: usize, guest: usize, deed: Deed) -> bool {
        let id = guest_id(guest);
        let (true, Ok(run)) = (guest < case.guests.len(), self.engine.run(&id)) else { return false };
        match deed {
            Deed::Start => self.start_guest(case, guest).await,
            Deed::Signal => self.signal(&run, "plum", &json!(number), &format!("guest-{number}")).await,
            Deed::Cancel => {
                let cancel = run.cancel("the client wants it").id(&request_id(number));
                self.request(&id, Asked::Cancel, cancel, delivered).await;
            }
            Deed::Terminate => {
                self.request(&id, Asked::Terminate, run.terminate("enough"), |()| "Terminated".to_owned()).await;
            }
        }
        true
    }

    async fn start_guest(&self, case: &Case, guest: usize) {
        let (id, wanted) = (guest_id(guest), &case.guests[guest]);
        let input = Input::of(wanted.tree.clone());
        let start = wanted.flow.say(self.engine.start(WORKFLOW, &input).id(&id), self.world.now());
        let number = self.ledger.asked(&id, Asked::Start, self.world.elapsed());
        let told = match start.await {
            Ok(run) if run.id().as_str() == id => Told::Done("Started".to_owned()),
            // Another run answers for it.
            Ok(_) => Told::Refused("joined".to_owned()),
            Err(EngineError::Store(error)) if error.is_retryable() => Told::Unknown,
            Err(error) => Told::Refused(error.code().to_owned()),
        };
        self.ledger.told(number, told, self.world.elapsed());
    }
}
