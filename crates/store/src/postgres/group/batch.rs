//! One caller's items and the answers they will get.

use outlast_core::limits::Limits;
use outlast_core::time::Timestamp;
use tokio::sync::oneshot;

use super::advance::Advance;
use super::{Ending, Job, Pass};
use crate::error::{StoreError, Trouble};
use crate::logic::Halt;
use crate::postgres::needs::Needs;
use crate::postgres::work::Work;
use crate::postgres::working_set::WorkingSet;
use crate::rows::Fault;

type Answer<W> = Result<<W as Work>::Answer, <W as Work>::Refusal>;

pub(super) struct Batch<W: Work> {
    items: Vec<Item<W>>,
    focus: Option<usize>,
    reply: oneshot::Sender<Vec<Answer<W>>>,
}

struct Item<W: Work> {
    work: W,
    answer: Option<Answer<W>>,
    /// The answer will not change: later passes leave the item alone.
    settled: bool,
}

impl<W: Work> Batch<W> {
    pub(super) fn new(items: Vec<W>, reply: oneshot::Sender<Vec<Answer<W>>>) -> Self {
        let items = items.into_iter().map(|work| Item { work, answer: None, settled: false }).collect();
        Batch { items, focus: None, reply }
    }

    fn open(&self) -> impl Iterator<Item = &Item<W>> {
        let focus = self.focus;
        let in_focus = move |at: usize| focus.is_none_or(|only| only == at);
        self.items.iter().enumerate().filter(move |(at, item)| !item.settled && in_focus(*at)).map(|(_, item)| item)
    }

    fn open_mut(&mut self) -> impl Iterator<Item = &mut Item<W>> {
        let focus = self.focus;
        let in_focus = move |at: usize| focus.is_none_or(|only| only == at);
        self.items.iter_mut().enumerate().filter(move |(at, item)| !item.settled && in_focus(*at)).map(|(_, item)| item)
    }
}

impl<W: Work> Job for Batch<W> {
    fn items(&self) -> usize {
        self.items.len()
    }

    fn weight(&self) -> usize {
        self.items.iter().map(|item| item.work.weight()).sum()
    }

    fn is_open(&self) -> bool {
        self.open().next().is_some()
    }

    fn focus(&mut self, item: Option<usize>) {
        self.focus = item;
    }

    fn needs(&self, needs: &mut Needs) {
        self.open().for_each(|item| item.work.needs(needs));
    }

    fn apply(&mut self, set: &mut WorkingSet, limits: &Limits) -> Pass {
        let mut pass = Pass::default();
        for item in self.open_mut() {
            match item.work.apply(set, limits) {
                Ok(answer) => item.answer = Some(Ok(answer)),
                Err(Halt::Refused(refusal)) => item.answer = Some(Err(refusal)),
                Err(Halt::Fault(Fault::Miss)) => pass.missed = true,
                Err(Halt::Fault(Fault::Failed(error))) => {
                    item.answer = Some(Err(error.into()));
                    item.settled = true;
                    pass.failed = true;
                }
            }
        }
        pass
    }

    fn must_resolve(&self) -> bool {
        W::RESOLVED && self.open().any(|item| matches!(item.answer, Some(Ok(_))))
    }

    fn advances<'j>(&'j self, limits: &Limits, into: &mut Vec<Advance<'j>>) -> bool {
        let commits = self.items.iter().map(|item| item.work.as_advance(limits));
        let before = into.len();
        into.extend(commits.map_while(|commit| commit));
        into.len() - before == self.items.len()
    }

    fn advanced(&mut self, at: &[Option<Timestamp>]) {
        for (item, at) in self.items.iter_mut().zip(at) {
            if let Some(answer) = at.and_then(|at| item.work.advanced(at)) {
                item.answer = Some(Ok(answer));
                item.settled = true;
            }
        }
    }

    fn settle(&mut self, ending: &Ending<'_>) {
        for item in self.open_mut() {
            item.settled = true;
            match ending {
                Ending::Applied => {}
                Ending::Failed(error) => item.answer = Some(Err((*error).clone().into())),
                Ending::Unknown(txn) => match item.answer {
                    // Without an answer it was sent to be advanced, and may have been.
                    Some(Ok(_)) | None => item.answer = Some(Err(W::lost(*txn))),
                    // What was refused may have been refused because of a neighbour that never came to be.
                    Some(Err(_)) => {
                        let message = "the connection broke before the server answered";
                        item.answer = Some(Err(StoreError::unavailable(Trouble::Connection, message).into()));
                    }
                },
            }
        }
    }

    fn answer(self: Box<Self>) {
        let unanswered = || StoreError::unavailable(Trouble::Other, "the item was not reached").into();
        let answers = self.items.into_iter().map(|item| item.answer.unwrap_or_else(|| Err(unanswered())));
        // Whoever asked may have stopped waiting.
        let _ = self.reply.send(answers.collect());
    }
}
