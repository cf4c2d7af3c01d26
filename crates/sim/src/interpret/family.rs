//! Children.

use outlast::{Child as Running, Result};

use super::operations::Open;
use super::{Input, Player, WORKFLOW};
use crate::outcome::Outcome;
use crate::tree::{Child, Kin};

impl Player {
    /// A child whose end is awaited.
    pub(super) fn kin(&self, child: Child) -> Running<Outcome> {
        let Child { tree, close, .. } = child;
        let running = self.ctx.child::<Outcome>(WORKFLOW, &Input { tree: *tree }).named(&self.place.name("child"));
        match close {
            Some(policy) => running.on_close(policy),
            None => running,
        }
    }

    pub(super) async fn child(self, child: Child) -> Result<Outcome> {
        match child.how {
            Kin::Awaited => self.kin(child).await,
            Kin::Detached => Ok(Outcome::Detached(self.kin(child).detach().await?.to_string())),
            Kin::Left => {
                drop(self.kin(child).start());
                Ok(Outcome::Done)
            }
        }
    }

    pub(super) fn open_child(&self, child: Child) -> Open {
        match child.how {
            Kin::Detached => Open::Detached(self.kin(child).detach().start()),
            Kin::Awaited | Kin::Left => Open::Child(self.kin(child).start()),
        }
    }
}
